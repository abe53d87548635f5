"""A fault fires once, counts with evidence alone, and its undo is on disk before it is made."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import Clock
from chaos.base.wait import Deadline, Patience
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.signals import kill, suspend
from chaos.heal.undo import Undone
from chaos.history.ledger import Ledger, UndoStep
from chaos.history.reader import History, read_history
from chaos.history.writer import HistoryWriter
from chaos.machine.job.protocol import Job, PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import NoSuchProcess, ProcessIdentity, RefusedProcess, WrongProcess
from chaos.plan.job_effect import NONE
from chaos.plan.parts.fault import PlannedFault
from chaos.run.inject.injection import Injection
from tests.unit.run.fakes import FakeConnection, FakeJob, at_barrier, identity, planned

RANKS = {rank: identity(rank) for rank in range(4)}
KINDS: dict[str, FaultKind] = {"kill": kill.KIND, "suspend": suspend.KIND}
GO = [{"message": "go"}]


@pytest.fixture
def written(tmp_path: Path) -> Callable[[], History]:
    """The history so far, which must be undamaged."""

    def written() -> History:
        read = read_history(tmp_path / "history")
        assert read.problems == ()
        return read

    return written


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "undo.jsonl")


Make = Callable[..., Injection]


@pytest.fixture
def make(tmp_path: Path, clock: Clock, ledger: Ledger) -> Iterator[Make]:
    """The injection of faults: ``make(fault, …)``. Evidence is waited for 30 s of a clock that a test can afford."""
    (tmp_path / "history").mkdir()
    with HistoryWriter(tmp_path / "history" / "harness.jsonl", writer="harness", run="r", clock=clock) as history:

        def make(*faults: PlannedFault, undo: Callable[[UndoStep], Undone] | None = None, **kinds: Any) -> Injection:
            return Injection(
                faults,
                {**KINDS, **kinds},
                history=history,
                ledger=ledger,
                attempt="train",
                patience=Patience(30, clock, (Deadline("run", 600, clock),)),
                records=tmp_path / "history",
                undo=undo,
            )

        yield make


def names(history: History) -> list[str]:
    return [event.event for event in history.events][1:]


def test_a_fault_is_armed_for_its_ranks_alone(make: Make, written: Callable[[], History]) -> None:
    both = planned(1, 2, trigger={"any": [{"step": 5, "phase": "step.end"}, {"step": 7, "phase": "forward"}]})
    injection = make(both, planned(2, id="later", trigger={"elapsed": 3.0}))
    points = [("kill", 5, "step.end"), ("kill", 7, "forward")]
    assert [(one["fault"], one["step"], one["phase"]) for one in injection.armed_for(2)] == points
    assert injection.armed_for(0) == []
    assert [event.data["fault"] for event in written().select("fault.armed", attempt="train")] == ["kill", "later"]


def test_a_kill_lands_with_the_kernels_word_and_the_ranks_place(make: Make, written: Callable[[], History]) -> None:
    injection, job, connection = make(planned(2)), FakeJob(), FakeConnection()
    injection.inject_due(job, RANKS)
    assert job.signals == []
    injection.hold(at_barrier(connection, 2))
    injection.inject_due(job, RANKS)
    injection.inject_due(job, RANKS)
    assert job.signals == [(102, signal.SIGKILL)]
    assert injection.waiting == ""
    assert names(written()) == ["fault.armed", "fault.injecting", "fault.landed"]
    act, landed = written().events[2:]
    assert (act.attempt, act.rank, act.pid) == ("train", 2, 102)
    assert act.data == {"fault": "kill", "kind": "kill", "signal": 9, "target_rank": 2, "start_time": 1002}
    assert landed.data == {
        "fault": "kill",
        "kind": "kill",
        "ranks": [2],
        "step": 5,
        "phase": "step.end",
        "evidence": [{"rank": 2, "pid": 102, "signal": 9, "barrier": {"step": 5, "phase": "step.end"}}],
    }
    assert injection.known.landed == {"kill"}
    assert connection.answers == GO


def test_a_handler_of_an_earlier_recovery_is_not_the_one_that_is_meant(
    make: Make, written: Callable[[], History]
) -> None:
    """A fault at a handler comes after another one: until that has landed, the rank must go on with its recovery."""
    inside = planned(3, id="inside", trigger={"handler": "repair", "after": "second"})
    second = planned(2, id="second", trigger={"step": 9, "phase": "forward"})
    injection, job = make(inside, second), FakeJob()
    early, late, other = FakeConnection(), FakeConnection(), FakeConnection()
    injection.hold(at_barrier(early, 3, fault="inside", phase="handler.repair"))
    injection.inject_due(job, RANKS)
    assert (early.answers, job.signals) == ([{"message": "later"}], [])
    injection.hold(at_barrier(other, 2, fault="second", step=9, phase="forward"))
    injection.inject_due(job, RANKS)
    injection.hold(at_barrier(late, 3, fault="inside", phase="handler.repair"))
    injection.inject_due(job, RANKS)
    assert (late.answers, job.signals) == (GO, [(102, signal.SIGKILL), (103, signal.SIGKILL)])
    assert [event.data["fault"] for event in written().select("fault.landed")] == ["second", "inside"]


def test_a_rank_that_waits_at_a_step_for_another_fault_is_held(make: Make) -> None:
    """At a step, unlike at a handler, there is nothing that it could be mistaken for."""
    fault = planned(3, id="inside", trigger={"step": 5, "phase": "forward", "after": "second"})
    injection, connection = make(fault, planned(2, id="second")), FakeConnection()
    injection.hold(at_barrier(connection, 3, fault="inside", phase="forward"))
    injection.inject_due(FakeJob(), RANKS)
    assert connection.answers == []


def test_several_ranks_are_hit_together_or_not_at_all(make: Make, written: Callable[[], History]) -> None:
    injection, job = make(planned(1, 3)), FakeJob()
    injection.hold(at_barrier(FakeConnection(), 1))
    injection.inject_due(job, RANKS)
    assert job.signals == []
    injection.hold(at_barrier(FakeConnection(), 3))
    injection.inject_due(job, RANKS)
    assert [pid for pid, _ in job.signals] == [101, 103]
    assert names(written())[1:] == ["fault.injecting", "fault.injecting", "fault.landed"]
    assert [entry["rank"] for entry in written().events[-1].data["evidence"]] == [1, 3]


def missed(make: Make, written: Callable[[], History], job: FakeJob, kind: str = "kill") -> str:
    """Fire a fault that must be missed, and return the reason."""
    injection, connection = make(planned(2, kind=kind)), FakeConnection()
    injection.hold(at_barrier(connection, 2))
    injection.inject_due(job, RANKS)
    assert names(written())[-1] == "fault.missed"
    assert not written().select("fault.landed")
    assert injection.known.landed == set()
    assert injection.waiting == ""
    assert connection.answers == GO
    injection.inject_due(job, RANKS)
    return str(written().events[-1].data["reason"])


def test_without_evidence_a_fault_is_missed_after_its_deadline(
    make: Make, written: Callable[[], History], clock: Clock
) -> None:
    began = clock.mono()
    job = FakeJob(on_signal=lambda job, process, number: None)
    reason = missed(make, written, job)
    assert reason == "deadline 'evidence of fault kill' of 30 s has expired"
    assert 30e9 <= clock.mono() - began < 31e9
    assert len(job.signals) == 1


def test_evidence_may_come_late_but_within_the_deadline(
    make: Make, written: Callable[[], History], clock: Clock
) -> None:
    began = clock.mono()

    class Slow(FakeJob):
        """Its processes end 20 s after the signal."""

        def exit_status(self, process: ProcessIdentity) -> ExitStatus | None:
            return ExitStatus(signal=9) if clock.mono() - began > 20e9 else None

    injection = make(planned(2))
    injection.hold(at_barrier(FakeConnection(), 2))
    injection.inject_due(Slow(), RANKS)
    assert names(written())[-1] == "fault.landed"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (ExitStatus(signal=15), "rank 2 ended with signal 15, not with signal 9"),
        (ExitStatus(code=0), "rank 2 ended with exit code 0, not with signal 9"),
        (ExitStatus(code=137), "rank 2 ended with exit code 137, not with signal 9"),
        (ExitStatus(), "rank 2 ended with unknown, not with signal 9"),
    ],
)
def test_a_process_that_ended_in_another_way_was_not_killed(
    make: Make, written: Callable[[], History], status: ExitStatus, words: str
) -> None:
    def end(job: FakeJob, process: ProcessIdentity, number: int) -> None:
        job.statuses[process] = status

    assert missed(make, written, FakeJob(on_signal=end)) == words


@pytest.mark.parametrize(
    "error", [NoSuchProcess("it has ended"), WrongProcess("another"), RefusedProcess("init"), PlatformError("not ours")]
)
def test_a_signal_that_cannot_be_sent_is_a_miss_with_the_reason(
    make: Make, written: Callable[[], History], error: Exception
) -> None:
    def refuse(job: FakeJob, process: ProcessIdentity, number: int) -> None:
        raise error

    assert missed(make, written, FakeJob(on_signal=refuse)) == str(error)


def test_a_rank_without_a_process_is_a_miss(make: Make, written: Callable[[], History]) -> None:
    injection, job = make(planned(1, 3)), FakeJob()
    for rank in (1, 3):
        injection.hold(at_barrier(FakeConnection(), rank))
    injection.inject_due(job, {1: identity(1)})
    assert job.signals == []
    assert written().events[-1].data["reason"] == "no process of rank 3 was found"


def test_a_suspension_is_seen_by_the_kernel_and_its_undo_is_on_disk_before(
    make: Make, written: Callable[[], History], ledger: Ledger
) -> None:
    on_disk: list[list[UndoStep]] = []

    def stop(job: FakeJob, process: ProcessIdentity, number: int) -> None:
        on_disk.append(list(ledger.read().steps))
        assert names(written())[-1] == "fault.injecting"
        job.states[process] = "stopped"

    injection, job = make(planned(1, 2, kind="suspend")), FakeJob(on_signal=stop)
    for rank in (1, 2):
        injection.hold(at_barrier(FakeConnection(), rank))
    injection.inject_due(job, RANKS)
    assert [len(steps) for steps in on_disk] == [2, 2]
    assert [(step.id, step.action, step.arguments["pid"]) for step in ledger.read().steps] == [
        ("kill-rank-1", "resume-process", 101),
        ("kill-rank-2", "resume-process", 102),
    ]
    assert names(written())[-1] == "fault.landed"
    assert injection.suspended == {1, 2}
    injection.record_unhealable()
    assert not written().select("fault.healed")


def test_a_suspension_of_a_process_that_ended_is_missed(make: Make, written: Callable[[], History]) -> None:
    assert missed(make, written, FakeJob(), kind="suspend") == "rank 2 has ended before it could be suspended"


def test_a_fault_whose_undo_cannot_be_recorded_is_not_made(make: Make, ledger: Ledger) -> None:
    ledger.record(UndoStep("kill-rank-2", "kill", "resume-process"))
    injection, job = make(planned(2, kind="suspend")), FakeJob()
    injection.hold(at_barrier(FakeConnection(), 2))
    with pytest.raises(RuntimeError, match="kill-rank-2 was recorded before"):
        injection.inject_due(job, RANKS)
    assert job.signals == []


def test_a_death_is_healed_when_the_job_has_been_ended(make: Make, written: Callable[[], History]) -> None:
    injection = make(planned(2))
    injection.record_unhealable()
    assert not written().select("fault.healed")
    injection.hold(at_barrier(FakeConnection(), 2))
    injection.inject_due(FakeJob(), RANKS)
    injection.record_unhealable()
    (healed,) = written().select("fault.healed", attempt="train")
    assert healed.data == {"fault": "kill", "how": "nothing to undo: the job was ended"}


def test_what_never_came_is_missed_with_what_it_waited_for(make: Make, written: Callable[[], History]) -> None:
    injection, connection = make(planned(1, 2), planned(3, id="other", trigger={"after": "kill"})), FakeConnection()
    assert injection.waiting == (
        "fault kill waits for step 5 step.end of ranks 1-2; fault other waits for fault kill to land"
    )
    injection.hold(at_barrier(connection, 1))
    injection.miss_rest("the job has ended")
    injection.miss_rest("the job has ended")
    assert [event.data["reason"] for event in written().select("fault.missed")] == [
        "the job has ended; the fault still waited for step 5 step.end of ranks 1-2",
        "the job has ended; the fault still waited for fault kill to land",
    ]
    assert connection.answers == GO


def test_held_ranks_go_on_when_another_branch_fired(make: Make, written: Callable[[], History]) -> None:
    either = planned(1, 2, trigger={"any": [{"step": 5, "phase": "step.end"}, {"elapsed": 3.0}]})
    injection, early, late = make(either), FakeConnection(), FakeConnection()
    injection.hold(at_barrier(early, 1))
    injection.known.elapsed = 3.1
    injection.inject_due(FakeJob(on_signal=lambda job, process, number: job.statuses.update({process: KILLED})), RANKS)
    assert early.answers == GO
    # It arrives when all is over, as after a replay: not held.
    injection.hold(at_barrier(late, 2))
    assert late.answers == GO
    assert injection.armed_for(2) == []
    landed = written().events[-1].data
    assert [entry["barrier"] for entry in landed["evidence"]] == [{"step": 5, "phase": "step.end"}, None]


KILLED = ExitStatus(signal=9)


def test_one_fault_can_wait_for_another_to_land(make: Make, written: Callable[[], History]) -> None:
    first, second = planned(1, id="first"), planned(3, id="second", trigger={"after": "first"})
    injection, job = make(second, first), FakeJob()
    injection.inject_due(job, RANKS)
    injection.hold(at_barrier(FakeConnection(), 1, "first"))
    injection.inject_due(job, RANKS)
    injection.inject_due(job, RANKS)
    assert [event.data["fault"] for event in written().select("fault.landed")] == ["first", "second"]
    assert written().events[-1].data["step"] is None


def test_a_fault_of_a_missed_one_never_fires(make: Make) -> None:
    injection, job = make(planned(1, id="first"), planned(3, id="second", trigger={"after": "first"})), FakeJob()
    job.on_signal = lambda job, process, number: job.statuses.update({process: ExitStatus(code=1)})
    injection.hold(at_barrier(FakeConnection(), 1, "first"))
    injection.inject_due(job, RANKS)
    injection.inject_due(job, RANKS)
    assert [pid for pid, _ in job.signals] == [101]
    assert injection.waiting == "fault second waits for fault first to land"


@pytest.mark.parametrize(("parameters", "ends"), [({"seconds": 20}, True), ({}, False)])
def test_a_stopped_rank_is_continued_after_its_time_and_else_at_the_end_alone(
    make: Make, clock: Clock, written: Callable[[], History], parameters: dict[str, Any], ends: bool
) -> None:
    job, continued = FakeJob(), list[str]()

    def undo(step: UndoStep) -> Undone:
        continued.append(step.action)
        job.states[RANKS[1]] = "alive"
        return Undone(step, True, "continued")

    job.on_signal = lambda job, process, number: job.states.update({process: "stopped"})
    injection = make(replace(planned(1, id="stop", kind="suspend"), parameters=parameters), undo=undo)
    injection.hold(at_barrier(FakeConnection(), 1, "stop"))
    injection.inject_due(job, RANKS)
    assert injection.suspended == (set() if ends else {1})
    clock.sleep(19.0)
    injection.inject_due(job, RANKS)
    assert continued == []
    clock.sleep(2.0)
    injection.inject_due(job, RANKS)
    injection.inject_due(job, RANKS)
    assert continued == (["resume-process"] if ends else [])
    assert bool(written().select("fault.healed", fault="stop")) is ends


def test_an_unknown_fault_holds_nobody(make: Make) -> None:
    injection, connection = make(planned(2)), FakeConnection()
    injection.hold(at_barrier(connection, 2, "of another attempt"))
    assert connection.answers == GO


class Gentle(FaultKind):
    """A fault that sends no signal and is undone; its evidence comes in two looks."""

    name = "gentle"
    effect = NONE
    undone_by = "resume-process"

    def __init__(self) -> None:
        self.looks = 0

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        return [UndoStep(f"{fault}-undo", fault, self.undone_by)]

    def inject(self, job: Job, victim: Victim) -> None:
        if victim.rank == 3:
            raise FaultMissed("rank 3 is not to be touched")

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        self.looks += 1
        return {"mark": "done"} if self.looks > 1 else None


def test_a_kind_of_another_package_brings_its_own_evidence(make: Make, written: Callable[[], History]) -> None:
    injection = make(planned(1, kind="gentle", trigger={"elapsed": 1.0}), gentle=Gentle())
    injection.known.elapsed = 2.0
    injection.inject_due(FakeJob(), RANKS)
    assert written().select("fault.injecting")[0].data["signal"] is None
    assert written().events[-1].data["evidence"] == [{"rank": 1, "pid": 101, "mark": "done", "barrier": None}]
    assert injection.suspended == set()


class Unhealable(Gentle):
    undone_by = "undo-gentle"

    def inject(self, job: Job, victim: Victim) -> None:
        raise AssertionError("made, and nothing could put it back")


def test_a_fault_that_nothing_here_could_put_back_is_not_made(
    make: Make, written: Callable[[], History], ledger: Ledger
) -> None:
    injection = make(planned(1, kind="gentle", trigger={"elapsed": 1.0}), gentle=Unhealable())
    injection.known.elapsed = 2.0
    injection.inject_due(FakeJob(), RANKS)
    last = written().events[-1]
    assert last.event == "fault.missed"
    assert "no package has registered the undo action 'undo-gentle'" in last.data["reason"]
    assert ledger.read().steps == ()


def test_one_rank_that_cannot_be_hit_misses_the_whole_fault(make: Make, written: Callable[[], History]) -> None:
    injection = make(planned(1, 3, kind="gentle", trigger={"elapsed": 1.0}), gentle=Gentle())
    injection.known.elapsed = 2.0
    injection.inject_due(FakeJob(), RANKS)
    assert written().events[-1].data["reason"] == "rank 3 is not to be touched"
