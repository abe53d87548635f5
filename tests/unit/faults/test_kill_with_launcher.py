"""``kill`` with the launcher: the launcher of the rank's node ends first, and the kernel says how both have ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.signals.kill import KIND
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import ProcessIdentity

LAUNCHERS = tuple(ProcessIdentity(50 + node, 1, "boot", node) for node in range(2))
VICTIM = Victim(2, ProcessIdentity(102, 1, "boot", 1), Path("record"), parameters={"with": "launcher"})


@dataclass
class TwoNodes:
    """A job on two nodes of which processes end when they get a signal."""

    launchers: tuple[ProcessIdentity, ...] = LAUNCHERS
    ends: dict[ProcessIdentity, ExitStatus] = field(default_factory=dict)
    signals: list[int] = field(default_factory=list)

    @property
    def launcher(self) -> ProcessIdentity:
        return self.launchers[0]

    def signal(self, identity: ProcessIdentity, signum: int) -> None:
        self.signals.append(identity.pid)
        self.ends.setdefault(identity, ExitStatus(signal=int(signum)))

    def exit_status(self, identity: ProcessIdentity) -> ExitStatus | None:
        return self.ends.get(identity)


def test_the_launcher_of_the_node_ends_before_the_rank_and_once() -> None:
    job = TwoNodes()
    other = replace(VICTIM, rank=3, identity=replace(VICTIM.identity, pid=103))
    for victim in (VICTIM, other):
        KIND.inject(job, victim)  # type: ignore[arg-type]
    assert job.signals == [51, 102, 103]
    shown = {"signal": 9, "launcher": {"pid": 51, "signal": 9}}
    assert [KIND.evidence(job, victim) for victim in (VICTIM, other)] == [shown, shown]  # type: ignore[arg-type]


def test_without_the_parameter_the_launcher_is_left_alone() -> None:
    job = TwoNodes()
    KIND.inject(job, replace(VICTIM, parameters={}))  # type: ignore[arg-type]
    assert job.signals == [102]
    assert KIND.evidence(job, replace(VICTIM, parameters={})) == {"signal": 9}  # type: ignore[arg-type]


def test_a_launcher_that_ended_otherwise_is_a_miss_and_a_living_one_no_evidence() -> None:
    job = TwoNodes()
    job.ends[VICTIM.identity] = ExitStatus(signal=9)
    assert KIND.evidence(job, VICTIM) is None  # type: ignore[arg-type]
    job.ends[LAUNCHERS[1]] = ExitStatus(code=1)
    with pytest.raises(FaultMissed, match="launcher 51 ended with"):
        KIND.evidence(job, VICTIM)  # type: ignore[arg-type]


def test_a_job_without_a_launcher_on_that_node_is_a_miss() -> None:
    with pytest.raises(FaultMissed, match="0 launchers on the node of rank 2"):
        KIND.inject(TwoNodes(LAUNCHERS[:1]), VICTIM)  # type: ignore[arg-type]
