"""The job kind ``mindformers``: trains what a configuration of MindFormers says, under msrun."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from chaos.jobs.kind import Command, Examined, JobError, Launch, Simulated
from chaos.jobs.mindformers.configuration import Configuration, read_configuration
from chaos.jobs.mindformers.reader import complete, examine
from chaos.jobs.msrun import msrun_argv, tft_switches
from chaos.plan.traits import JobTraits
from chaos.scenario.completion import Completion, Unfinished
from chaos.scenario.errors import ScenarioError
from chaos.scenario.model import Scenario
from chaos.scenario.terms import Phase

if TYPE_CHECKING:
    from chaos.scenario.load import Cell

COPY = "mindformers.yaml"
"""The merged configuration in the job's directory, which the job trains from; the user's own stays as it is."""

_PROGRAM = "run_mindformer.py"


class MindFormersJob:
    """Trains with MindFormers' own Trainer and callbacks."""

    name = "mindformers"
    traits = JobTraits(
        observable=frozenset(get_args(Phase)),
        checkpoint_form="mindformers",
        storage="output/checkpoint",
        devices=frozenset({"CPU", "Ascend"}),
        lacks={"job.script": "trains what job.config says, and runs no script"},
    )
    needs: tuple[str, ...] = ("mindspore", "mindformers", "msrun")
    ports = 1
    extensions: tuple[str, ...] = ()

    def completed(self, cell: Unfinished) -> Completion:
        """What the configuration says of keys that the scenario may leave out."""
        return complete(cell)

    def examined(self, cell: Cell, scenario_file: Path) -> Examined:
        """What the configuration means for the plan. Raises ScenarioError where it cannot be read."""
        return examine(cell, scenario_file, self.traits)

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """Nothing is put in by this kind."""
        return ()

    def prepare(self, launch: Launch) -> None:
        """Write the job's copy of the configuration. Raises JobError."""
        configuration = _configuration(launch.scenario, launch.scenario_directory)
        configuration.write(launch.directory / COPY)

    def command(self, launch: Launch) -> Command:
        """msrun with MindFormers' own program, of the checkout or of the installed package."""
        job = launch.scenario.job
        if job.checkout is None:
            raise JobError("job.checkout: name the directory of MindFormers that holds run_mindformer.py")
        checkout = launch.scenario_directory / job.checkout
        program = checkout / _PROGRAM
        if not program.is_file():
            raise JobError(f"job.checkout: there is no file {program}")
        arguments = (f"--config={launch.directory / COPY}", *job.arguments)
        (master_port,) = launch.ports
        environment = {"MS_ENABLE_TFT": tft_switches(job.protection)} if job.protection else {}
        argv = msrun_argv(launch, program, arguments, master_port=master_port)
        return Command(argv, environment, (checkout,))

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """The merged configuration: what it says decides about every loss."""
        data = repr(_configuration(scenario, scenario_directory).plain())
        return {"configuration": hashlib.sha256(data.encode()).hexdigest()}


def _configuration(scenario: Scenario, directory: Path) -> Configuration:
    job = scenario.job
    if job.config is None:
        raise JobError("job.config: name the YAML that the job trains from")
    try:
        return read_configuration(job.config, job.overrides, directory / "scenario.yaml")
    except ScenarioError as error:
        raise JobError(str(error)) from error


KIND = MindFormersJob()
