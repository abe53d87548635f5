"""The job kind ``mindformers-rehearsal``: MindFormers' own Trainer and callbacks on the CPU.

The same as the kind ``mindformers``, with stand-ins for the Ascend-only parts, and with tiny jobs of its own.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.jobs.kind import Command, Examined, Launch, Simulated
from chaos.jobs.mindformers.configuration import Configuration
from chaos.jobs.mindformers.job import MindFormersJob, configuration_of
from chaos.jobs.mindformers.rules import STEP_LEVEL
from chaos.jobs.mindformers.run_copy import STRATEGIES
from chaos.plan.traits import JobTraits
from chaos.rehearsal.mindformers import as_callback
from chaos.rehearsal.mindformers.data import write_data
from chaos.rehearsal.mindformers.kernels import NAMES
from chaos.rehearsal.mindformers.strategy import write_strategies
from chaos.rehearsal.protection import (
    protection_environment,
    protection_path,
    room_digest,
    simulated_protection,
    with_controller,
)
from chaos.scenario.completion import Completion, Unfinished
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.rules_base import mapped, text

if TYPE_CHECKING:
    from chaos.scenario.load import Cell

_CONFIGS = Path(__file__).parent / "configs"
_DATA = "data"

_REHEARSED = frozenset({"job.agent", "job.hccl", "job.storage.mb_per_second"})
"""Traits that the genuine kind lacks and the device layer adds."""


class MindFormersRehearsal(MindFormersJob):
    """Trains a tiny model. ``job.config`` may also be the name of one of this kind's own configurations."""

    name = "mindformers-rehearsal"
    rehearsed = True
    traits: JobTraits = replace(
        MindFormersJob.traits,
        # The step is one graph, so the only points inside it that Python passes are those of the reduction of
        # gradients.
        observable=frozenset(
            {
                "step.begin",
                "allreduce.enter",
                "optimizer.update",
                "step.end",
                "checkpoint.begin",
                "checkpoint.write",
                "checkpoint.end",
                "checkpoint.load",
            }
        ),
        genuine=False,
        gradients=True,
        ports={"controller": 1},
        own_ports=frozenset({"communicator"}),
        lacks={key: why for key, why in MindFormersJob.traits.lacks.items() if key not in _REHEARSED},
        loading=frozenset({"path", "callback"}),
        # Seen to work in a step that is one graph. Mechanisms that copy state between ranks have not been tried there.
        mechanisms=frozenset({"TTP", "TRE"}),
        most_stages=1,
        slices=frozenset({1}),
        shards=frozenset({1}),
    )
    examples: Mapping[str, Mapping[str, Any]] = {"damaged record": {"config": "llama.yaml"}}
    needs: tuple[str, ...] = (*MindFormersJob.needs, "numpy")
    extensions: tuple[str, ...] = (
        "chaos.rehearsal.mindformers.device",
        "chaos.rehearsal.in_rank.storage",
        "chaos.rehearsal.control_endpoint",
    )

    def completed(self, cell: Unfinished) -> Completion:
        """Return the configuration's values of keys that the scenario may leave out."""
        job = dict(mapped(cell.data.get("job")))
        if (config := text(job.get("config"))) is not None:
            job["config"] = _own_or_named(config, cell.file.parent)
        return super().completed(replace(cell, data={**cell.data, "job": job}))

    def examined(self, cell: Cell, scenario_file: Path) -> Examined:
        """Return the configuration's meaning for the plan. Raises ScenarioError where it cannot be read."""
        examined = super().examined(replace(cell, scenario=_placed(cell.scenario, scenario_file.parent)), scenario_file)
        if cell.scenario.job.loading == "path":
            return examined
        return replace(examined, traits=as_callback.traits_of(examined.traits, MindFormersJob.traits))

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """Return the stand-ins of a scenario: the kernels always.

        The device layer where the agent brings it; the SDK where it is the stand-in.
        """
        kernels = Simulated(f"kernels that a CPU has not, made of small operators: {', '.join(NAMES)}", "kernels")
        if scenario.job.loading == "callback":
            return (kernels, *as_callback.simulated(scenario))
        return (
            kernels,
            Simulated("collectives, cluster formation and the device calls of TrainFaultTolerance", "device layer"),
            Simulated("gradient all-reduce through the host, in the middle of the graph", "device layer"),
            *_simulated_strategy(scenario),
            *simulated_protection(scenario, sdk),
        )

    def prepare(self, launch: Launch) -> None:
        """Make the training data: as many samples as one epoch of all ranks reads."""
        job = launch.scenario.job
        configuration = configuration_of(_placed(launch.scenario, launch.scenario_directory), launch.scenario_directory)
        batch, epochs = (_number(configuration, f"runner_config.{key}") for key in ("batch_size", "epochs"))
        samples = math.ceil(job.steps / epochs) * batch * launch.scenario.cluster.ranks
        write_data(launch.directory / _DATA, samples=samples, seed=job.seed)

    def command(self, launch: Launch) -> Command:
        """Return the launcher, with the needs of a rehearsal of fault tolerance. Raises JobError."""
        launch = replace(launch, scenario=_placed(launch.scenario, launch.scenario_directory))
        if launch.resume and _by_strategy(launch.scenario):
            write_strategies(launch.directory / STRATEGIES, launch.scenario.cluster.ranks)
        command = super().command(launch)
        home = launch.directory / "huggingface"
        environment = {
            **command.environment,
            # Data sets are read from the job's own directory, and nothing is looked for outside.
            "HF_HOME": str(home),
            "HF_HUB_OFFLINE": "1",
        }
        argv = with_controller(launch, command.argv, launch.ports[1])
        kernels = () if command.agent_by_path else (as_callback.SITE,)
        return replace(
            command,
            argv=argv,
            environment=environment,
            path=(*kernels, *command.path, *protection_path(launch)),
        )

    def trained_from(self, data: dict[str, Any], launch: Launch) -> dict[str, Any]:
        """Return the copy of the configuration, with its additional needs where there is no device layer."""
        return data if launch.scenario.job.loading == "path" else as_callback.trained_from(data)

    def protection(self, launch: Launch) -> dict[str, str]:
        """Return the variables of the mechanisms that are on, and of the stand-ins that they need."""
        return protection_environment(launch, launch.ports[1])

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """Return the configuration and everything in the rehearsal's room: any of it may change a loss."""
        placed = _placed(scenario, scenario_directory)
        digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(_CONFIGS.glob("*.yaml")))).hexdigest()
        return {**super().fingerprint(placed, scenario_directory), "rehearsal": room_digest(), "configs": digest}


def _by_strategy(scenario: Scenario) -> bool:
    """Return whether a resume looks for a replica's checkpoint by the saved strategies."""
    return any(mechanism in STEP_LEVEL for mechanism in scenario.job.protection)


def _simulated_strategy(scenario: Scenario) -> Iterator[Simulated]:
    if _by_strategy(scenario) and scenario.job.resume:
        yield Simulated("the parallel strategy that decides which rank's checkpoint a rank may load", "device layer")


def _number(configuration: Configuration, key: str) -> int:
    value = configuration.get(key)
    return value.data if value is not None and isinstance(value.data, int) else 1


def _placed(scenario: Scenario, directory: Path) -> Scenario:
    config = scenario.job.config
    if config is None:
        return scenario
    job = scenario.job.model_copy(update={"config": _own_or_named(config, directory)})
    return scenario.model_copy(update={"job": job})


def _own_or_named(config: str, directory: Path) -> str:
    """Return the path of a configuration: beside the scenario, else of this kind's own."""
    shipped = _CONFIGS / config
    return str(shipped) if shipped.is_file() and not (directory / config).is_file() else config


KIND = MindFormersRehearsal()
