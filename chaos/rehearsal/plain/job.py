"""The job kind ``plain``: ranks in plain Python and numpy, under the SDK, without MindSpore.

A run takes a second or two, so tests that need hundreds of runs use it: harness, plan, agent, SDK and checks are the
same as in a rehearsal with MindSpore.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from chaos.jobs.kind import Command, JobKind, Launch, Simulated
from chaos.jobs.own_launcher import check_command, own_argv, own_digests, rank_environment
from chaos.plan.topology.layout import layout_of
from chaos.plan.traits import JobTraits
from chaos.rehearsal.plain.mesh import MOST_STAGES
from chaos.rehearsal.protection import (
    protection_environment,
    protection_path,
    room_digest,
    simulated_protection,
    steps_per_epoch,
    with_controller,
    write_stale_record,
)
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.terms import Phase

_ROOM = Path(__file__).parent
_CHECKPOINTS = "checkpoints"


class PlainJob(JobKind):
    """Trains a network of two layers on made-up data."""

    name = "plain"
    traits = JobTraits(
        observable=frozenset(get_args(Phase)),
        checkpoint_form="mindspore",
        most_stages=MOST_STAGES,
        slices=frozenset({1, 2, 4, 8}),
        shards=frozenset({1}),
        storage=_CHECKPOINTS,
        any_replica=True,
        mindspore=False,
        starts_fast=True,
        alters=frozenset({"gradient", "weight", "activation", "batch", "loss"}),
        ports={"controller": 0},
        own_ports=frozenset({"communicator"}),
        own_launcher=True,
        lacks={
            "job.script": "has a script of its own and runs no other",
            "job.graph": "compiles no graphs",
            "job.compile_cache": "compiles nothing that could be kept",
            "job.storage.asynchronous_saving": "saves nothing in the background",
            "job.storage.memory": "keeps no checkpoint in memory",
        },
    )
    needs: tuple[str, ...] = ()
    examples: Mapping[str, Mapping[str, Any]] = {"any": {}}
    ports = 1
    extensions: tuple[str, ...] = ("chaos.rehearsal.plain.device", "chaos.rehearsal.control_endpoint")

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        """Return the framework always; the SDK where it is the stand-in."""
        return (
            Simulated("plain Python training loop; no framework is tested", "job"),
            Simulated("collectives and the device calls of the fault tolerance", "device layer"),
            *([] if scenario.job.tre is None else [Simulated("watch over the global norm", "job")]),
            *simulated_protection(scenario, sdk),
        )

    def prepare(self, launch: Launch) -> None:
        """Prepare nothing: the job makes its own input, or reads an earlier one's leftovers."""
        check_command(launch.scenario.job)
        write_stale_record(launch.scenario.job, launch.directory / _CHECKPOINTS)

    def command(self, launch: Launch) -> Command:
        """Return the launcher with the script's arguments, the protection switches and the stand-in SDK."""
        scenario, job = launch.scenario, launch.scenario.job
        (controller_port,) = launch.ports
        layout = layout_of(scenario.cluster)
        script = (
            *(str(launch.python), "-m", "chaos.rehearsal.plain.train"),
            f"--output={launch.directory / _CHECKPOINTS}",
            f"--steps={job.steps}",
            f"--steps-per-epoch={steps_per_epoch(job)}",
            f"--checkpoint-interval={job.checkpoint_interval or 0}",
            f"--seed={job.seed}",
            f"--model-parallel={layout.model}",
            f"--pipeline-stages={layout.stages}",
            f"--is-recover={int(launch.resume)}",
            *(["--continue"] if "RSC" in job.protection and job.checkpoint_interval else []),
            *([] if job.tre is None else [f"--norm-threshold={job.tre.threshold!r}"]),
            # The controller looks every 50 ms for a requested pause; a step or two may pass meanwhile, not five.
            *(["--step-seconds=0.05"] if "TSP" in job.protection else []),
            *job.arguments,
        )
        if job.command is None:
            launcher = (str(launch.python), str(_ROOM / "plainrun.py"), _share(launch), str(launch.logs))
            argv = (*launcher, *script)
        else:
            argv = own_argv(launch, script, port=controller_port)
        return Command(
            with_controller(launch, argv, controller_port),
            {**protection_environment(launch, controller_port), **rank_environment(job)},
            protection_path(launch),
        )

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        """Return everything in the rehearsal's room: any of it may change a loss."""
        return {"rehearsal": room_digest(), **own_digests(scenario.job, scenario_directory)}


def _share(launch: Launch) -> str:
    """Return the number of ranks, and the ranks of this launcher where these are not all."""
    ranks = str(launch.scenario.cluster.ranks)
    return ranks if launch.place is None else f"{ranks}:{','.join(map(str, launch.place.ranks))}"


KIND = PlainJob()
