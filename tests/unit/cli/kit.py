"""A scenario, and one kind of each registry, for tests of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from chaos.faults.kind import FaultKind, Victim
from chaos.history.ledger import UndoStep
from chaos.jobs.kind import Command, JobKind, Launch, Simulated
from chaos.machine.job.local import LocalPlatform
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import DEATH
from chaos.plan.traits import JobTraits
from chaos.platforms.kind import PlatformKind
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.terms import Phase

SCENARIO = """\
chaos: 1
name: kill-rank
description: A rank dies.
tags: [ttp]
variables: {victim: 1}
cluster: {ranks: 4, parallel: {data_parallel: 4}}
job: {steps: 12, protection: [TTP]}
faults:
  - kind: kill
    target: {rank: "${victim}"}
    trigger: {step: 6, phase: optimizer.update}
"""


class FakeJob(JobKind):
    """A job kind that can observe every phase."""

    name = "rehearsal"
    traits = JobTraits(observable=frozenset(get_args(Phase)), checkpoint_form="mindspore")
    needs = ("cores",)

    def simulated(self, scenario: Scenario, sdk: str) -> tuple[Simulated, ...]:
        return ()

    def prepare(self, launch: Launch) -> None:
        raise AssertionError("no job is started here")

    def command(self, launch: Launch) -> Command:
        raise AssertionError("no job is started here")

    def fingerprint(self, scenario: Scenario, scenario_directory: Path) -> Mapping[str, str]:
        return {}


JOB = FakeJob()


class FakeFault(FaultKind):
    """A fault kind that ends a process."""

    name = "kill"
    effect = DEATH

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        raise AssertionError("no fault is made here")

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        raise AssertionError("no fault is made here")


FAULT = FakeFault()


PLATFORM = PlatformKind("local", LocalPlatform)
"""A platform that needs nothing."""


@dataclass(frozen=True)
class Ended:
    """What one call of the command line came to."""

    code: int
    out: str
    err: str


CONDITIONS: Mapping[str, Sequence[str]] = {
    "cpu-load": ("--set", "processes=2"),
    "cpu-quota": ("--set", "cores=0.02"),
    "fd-limit": ("--set", "spare=8"),
    "freeze": ("--for", "3s"),
    "memory-load": ("--set", "megabytes=8"),
}
"""Faults that last in a job that runs already, beside a suspension, and what has to be said of each."""
