"""A scenario, and one kind of each registry, for tests of the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from chaos.machine.job.local import LocalPlatform
from chaos.plan.traits import JobTraits
from chaos.platforms.kind import PlatformKind
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


class FakeJob:
    """A job kind that can observe every phase."""

    traits = JobTraits(observable=frozenset(get_args(Phase)), checkpoint_form="mindspore")
    needs = ("cores",)


class FakeFault:
    """A fault kind that ends a process."""

    effect = "death"


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
