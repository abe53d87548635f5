"""The job kind ``mindformers``: trains a configuration of MindFormers, under msrun."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from chaos.jobs.inputs import named_inputs, words_of
from chaos.jobs.kind import Command, Configured, Examined, JobError, Launch, Simulated
from chaos.jobs.mindformers.configuration import Configuration, read_configuration
from chaos.jobs.mindformers.launching import argv, checkout_of, named_checkout, source_digest
from chaos.jobs.mindformers.reader import complete, examine
from chaos.jobs.mindformers.rules import STEP_LEVEL
from chaos.jobs.mindformers.run_copy import CALLBACK, CHECKPOINTS, OUTPUT, REGISTERED, run_copy
from chaos.jobs.mindformers.version import release_of
from chaos.jobs.msrun import tft_environment
from chaos.plan.rules.shared_directory import SHARED_PATHS
from chaos.plan.traits import JobTraits
from chaos.scenario.completion import Completion, Unfinished
from chaos.scenario.errors import ScenarioError
from chaos.scenario.local_files import directory_problem
from chaos.scenario.models.scenario import Scenario

if TYPE_CHECKING:
    from chaos.scenario.load import Cell

_COPIES = {False: "mindformers.yaml", True: "mindformers-resume.yaml"}
"""The configurations in the job's directory from which its launches train; the user's own stays as it is."""

_BY_CONFIGURATION = {
    "job.graph": "is compiled as context.mode of its configuration says",
    "job.compile_cache": "is set by job.environment (MS_COMPILER_CACHE_ENABLE)",
    "job.storage.memory": "keeps no checkpoint in memory",
}
"""Keys that both kinds of MindFormers job ignore."""


class MindFormersJob(Configured):
    """Trains with MindFormers' own Trainer and callbacks."""

    name = "mindformers"
    rehearsed = False
    """Whether the device layer is a stand-in, so that mechanisms that need an Ascend device may be on without one."""
    traits = JobTraits(
        # Points of the step between its begin and its end are the device layer's, which is MindSpore's own here.
        observable=frozenset(
            {"step.begin", "step.end", "checkpoint.begin", "checkpoint.write", "checkpoint.end", "checkpoint.load"}
        ),
        checkpoint_form="mindformers",
        storage=CHECKPOINTS,
        restarts=True,
        loading=frozenset({"path", "callback"}),
        devices=frozenset({"CPU", "Ascend"}),
        genuine=True,
        gradients=False,
        watches_slices=True,
        ports={"scheduler": 0, "controller": 1},
        lacks={
            "job.script": "trains what job.config says, and runs no script",
            "job.agent": "starts no cluster agent: on a cluster MindCluster does",
            "job.hccl": "has MindSpore's own collectives: set HCCL_EXEC_TIMEOUT in job.environment",
            "job.storage.mb_per_second": "holds no storage back",
            **_BY_CONFIGURATION,
        },
    )
    needs: tuple[str, ...] = ("mindspore", "mindformers", "msrun")
    ports = 2
    extensions: tuple[str, ...] = ()

    def needs_for(self, scenario: Scenario) -> tuple[str, ...]:
        """Return the needs of this scenario: a checkout brings MindFormers itself."""
        return tuple(need for need in self.needs if need != "mindformers" or scenario.job.checkout is None)

    def completed(self, cell: Unfinished) -> Completion:
        """Return the configuration's values of keys that the scenario may leave out."""
        return complete(cell)

    def examined(self, cell: Cell, scenario_file: Path) -> Examined:
        """Return the meaning of the configuration for the plan. Raises ScenarioError if it cannot be read."""
        return examine(cell, scenario_file, self.traits, rehearsed=self.rehearsed)

    def missing_files(self, scenario: Scenario, directory: Path) -> Iterator[tuple[str, str, str]]:
        """Yield the checkout, if it is no directory. The configuration is read when the scenario is loaded."""
        if (checkout := named_checkout(scenario, directory)) and (why := directory_problem(checkout)):
            yield "job.checkout", f"{checkout}: {why}", "name the directory that MindFormers was cloned into"

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """Return nothing: all parts of this kind are genuine."""
        return ()

    def prepare(self, launch: Launch) -> None:
        """Make nothing before the first launch: the job reads the files that its configuration names."""

    def command(self, launch: Launch) -> Command:
        """Return the launcher, over the run's own copy of the configuration. Raises JobError."""
        job = launch.scenario.job
        checkout = checkout_of(launch)
        configuration = _configuration_for(launch)
        copy = launch.directory / _COPIES[launch.resume]
        protected = any(mechanism in STEP_LEVEL for mechanism in job.protection)
        data = run_copy(
            configuration,
            launch.directory,
            resume=launch.resume,
            checkout=checkout,
            protected=protected,
            release=release_of(checkout),
        )
        # The launcher's script appends the suffix to its log directory; that of a caller's shell would hide the logs.
        output = launch.directory / OUTPUT
        environment = {"LOG_MF_PATH": str(output / "log"), "MF_LOG_SUFFIX": ""}
        # With more than 8 ranks MindFormers reads its records only if it is configured that all nodes see them.
        environment[SHARED_PATHS] = ",".join(filter(None, (str(output), os.environ.get(SHARED_PATHS))))
        by_path = job.loading == "path"
        if not by_path:
            others = [callback for callback in data.get("callbacks") or [] if callback != CALLBACK]
            data["callbacks"] = [*others, CALLBACK]
            environment["REGISTER_PATH"] = str(REGISTERED)
        data = self.trained_from(data, launch)
        copy.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), "utf-8")
        line = argv(launch, copy, master_port=launch.ports[0])
        environment |= self.protection(launch)
        return Command(line, environment, () if checkout is None else (checkout,), by_path)

    def trained_from(self, data: dict[str, Any], launch: Launch) -> dict[str, Any]:
        """Return the copy of the configuration, with this kind's additions: none."""
        return data

    def protection(self, launch: Launch) -> dict[str, str]:
        """Return the environment variables of the mechanisms that are on."""
        return tft_environment(launch, launch.ports[1])

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """Return the merged configuration, a checkout's sources, and size and time of the files that it names."""
        data = configuration_of(scenario, scenario_directory).plain()
        entries = {f"configuration {scenario.job.config}": hashlib.sha256(repr(data).encode()).hexdigest()}
        checkout = named_checkout(scenario, scenario_directory)
        if checkout is not None:
            entries[f"checkout {checkout}"] = source_digest(checkout)
        # The run has an output directory of its own.
        read = {key: value for key, value in data.items() if key != "output_dir"}
        return {**named_inputs(words_of(read), checkout), **entries}


def _configuration_for(launch: Launch) -> Configuration:
    """Return the configuration of this launch: a resume keeps that of the run's start, even if the file has changed."""
    begun = launch.directory / _COPIES[False]
    if not launch.resume or not begun.is_file():
        return configuration_of(launch.scenario, launch.scenario_directory)
    job = launch.scenario.job.model_copy(update={"config": str(begun), "overrides": {}})
    return configuration_of(launch.scenario.model_copy(update={"job": job}), launch.scenario_directory)


def configuration_of(scenario: Scenario, directory: Path) -> Configuration:
    """Return the merged configuration of a scenario in this directory. Raises JobError."""
    job = scenario.job
    if job.config is None:
        raise JobError("job.config: name the YAML that the job trains from")
    try:
        return read_configuration(job.config, job.overrides, directory / "scenario.yaml")
    except ScenarioError as error:
        raise JobError(str(error)) from error


KIND = MindFormersJob()
