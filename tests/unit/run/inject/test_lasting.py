"""A fault that lasts: its ranks go on before its evidence, it ends when its time is over, and is healed when it has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import Clock
from chaos.base.wait import Patience
from chaos.faults.behaviours import Lasting, StillShown
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.signals import suspend
from chaos.heal.undo import Undone
from chaos.history.ledger import Ledger, UndoStep
from chaos.history.reader import History, read_history
from chaos.history.writer import HistoryWriter
from chaos.machine.job.protocol import HelperLost, Job, PlatformError
from chaos.machine.linux.process import ProcessIdentity
from chaos.plan.job_effect import NONE
from chaos.run.inject.injection import Injection
from tests.unit.run.fakes import FakeConnection, FakeJob, at_barrier, identity, planned

RANKS = {rank: identity(rank) for rank in range(4)}


class Halt(Lasting):
    """Halts ranks for two seconds; there is evidence only once they were let go."""

    name = "halt"
    effect = NONE

    def __init__(self, connections: list[FakeConnection]) -> None:
        self.connections = connections
        self.said: list[str] = []
        self.busy = False
        self.over = False
        self.ok = True

    def undone(self, step: UndoStep) -> Undone:
        self.said.append(f"undo {step.id}")
        return Undone(step, self.ok, "put back" if self.ok else "not possible")

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        return [UndoStep(f"{fault}-end", fault, "resume-process")]

    def inject(self, job: Job, victim: Victim) -> None:
        self.said.append(f"inject {victim.rank}")

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        return {"halted": True} if all(connection.answers for connection in self.connections) else None

    def lasts(self, victim: Victim) -> float:
        return 2.0

    def note_landing(self, victim: Victim) -> None:
        self.said.append(f"landed {victim.rank}")

    def may_end(self, job: Job, victim: Victim) -> bool:
        return not self.busy

    def end(self, victim: Victim) -> None:
        self.said.append(f"end {victim.rank}")

    def ended(self, job: Job, victim: Victim) -> bool:
        return self.over


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "undo.jsonl")


@pytest.fixture
def history(tmp_path: Path, clock: Clock) -> HistoryWriter:
    (tmp_path / "history").mkdir()
    return HistoryWriter(tmp_path / "history" / "harness.jsonl", writer="harness", run="r", clock=clock)


def under_way(
    kind: Halt,
    ledger: Ledger,
    history: HistoryWriter,
    clock: Clock,
    tmp_path: Path,
    undo: Callable[[UndoStep], Undone] | None = None,
) -> Injection:
    fault = planned(0, 1, id="halt", kind="halt", trigger={"step": 5, "phase": "step.begin"})
    injection = Injection(
        (fault,),
        {"halt": kind},
        history=history,
        ledger=ledger,
        attempt="train",
        patience=Patience(30, clock),
        records=tmp_path / "history",
        undo=undo or kind.undone,
    )
    for rank, connection in enumerate(kind.connections):
        injection.hold(at_barrier(connection, rank, "halt", phase="step.begin"))
    injection.inject_due(FakeJob(), RANKS)
    return injection


def names(tmp_path: Path) -> list[str]:
    read: History = read_history(tmp_path / "history")
    return [event.event for event in read.events if event.event.startswith("fault.")]


Under = Callable[[Halt], Injection]


@pytest.fixture
def start(ledger: Ledger, history: HistoryWriter, clock: Clock, tmp_path: Path) -> Under:
    return lambda kind: under_way(kind, ledger, history, clock, tmp_path)


def test_it_ends_when_its_time_is_over_and_is_healed_when_it_has_ended(
    start: Under, ledger: Ledger, clock: Clock, tmp_path: Path
) -> None:
    kind = Halt([FakeConnection(), FakeConnection()])
    injection = start(kind)
    assert kind.said == ["inject 0", "inject 1", "landed 0", "landed 1"]
    assert [connection.answers for connection in kind.connections] == [[{"message": "go"}]] * 2
    assert [step.id for step in ledger.open_steps()] == ["halt-end"]
    injection.inject_due(FakeJob(), RANKS)
    assert not any(said.startswith("end") for said in kind.said)
    assert injection.known.healed == set()
    clock.sleep(2.1)
    kind.busy = True  # something is still to be done while it lasts
    injection.inject_due(FakeJob(), RANKS)
    assert not any(said.startswith("end") for said in kind.said)
    kind.busy = False
    for _ in range(3):
        injection.inject_due(FakeJob(), RANKS)
    assert kind.said[4:] == ["end 0", "end 1"]
    assert "fault.healed" not in names(tmp_path)
    kind.over = True
    injection.inject_due(FakeJob(), RANKS)
    assert names(tmp_path)[-3:] == ["fault.landed", "fault.ending", "fault.healed"]
    assert injection.known.healed == {"halt"}
    assert ledger.open_steps() == []
    injection.lasting.end_all(FakeJob())
    assert kind.said[4:] == ["end 0", "end 1"]


def test_at_the_end_of_the_attempt_it_is_asked_to_end_and_its_undo_step_stays_open(
    start: Under, ledger: Ledger, tmp_path: Path
) -> None:
    kind = Halt([FakeConnection(), FakeConnection()])
    injection = start(kind)
    injection.lasting.end_all(FakeJob())
    assert kind.said[4:] == ["end 0", "end 1"]
    assert [step.id for step in ledger.open_steps()] == ["halt-end"]
    assert names(tmp_path)[-1] == "fault.ending"


@pytest.mark.parametrize("error", [FaultMissed("rank 0 has ended"), ProcessLookupError("3"), PlatformError("no node")])
def test_a_rank_that_dies_under_it_is_a_fact_and_no_failure_of_the_harness(
    start: Under, ledger: Ledger, clock: Clock, tmp_path: Path, error: Exception
) -> None:
    class Dead(Halt):
        dead = True

        def _look(self) -> bool:
            if self.dead:
                raise error
            return True

        def may_end(self, job: Job, victim: Victim) -> bool:
            return self._look()

        def end(self, victim: Victim) -> None:
            super().end(victim)
            self._look()

        def ended(self, job: Job, victim: Victim) -> bool:
            return self._look()

    kind = Dead([FakeConnection(), FakeConnection()])
    injection = start(kind)
    clock.sleep(2.1)
    for _ in range(3):
        injection.inject_due(FakeJob(), RANKS)
    assert kind.said[4:] == ["end 0", "end 1"]
    assert names(tmp_path)[-3:] == ["fault.landed", "fault.unseen", "fault.ending"]
    assert [step.id for step in ledger.open_steps()] == ["halt-end"]
    kind.dead = False
    injection.inject_due(FakeJob(), RANKS)
    assert names(tmp_path)[-1] == "fault.healed"


def test_a_helper_that_is_lost_under_it_ends_the_run(start: Under, clock: Clock) -> None:
    class Lost(Halt):
        def ended(self, job: Job, victim: Victim) -> bool:
            raise HelperLost("node 1")

    injection = start(Lost([FakeConnection(), FakeConnection()]))
    clock.sleep(2.1)
    with pytest.raises(HelperLost):
        injection.inject_due(FakeJob(), RANKS)


def test_one_that_has_not_landed_is_ended_by_its_undo_steps_at_once(
    ledger: Ledger, history: HistoryWriter, clock: Clock, tmp_path: Path
) -> None:
    class Never(Halt):
        ends_by_undo = True

        def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
            raise FaultMissed("its rank has ended")

    undone: list[str] = []

    def undo(step: UndoStep) -> Undone:
        undone.append(step.id)
        return Undone(step, True, "done")

    under_way(Never([FakeConnection(), FakeConnection()]), ledger, history, clock, tmp_path, undo)
    assert undone == ["halt-end"]
    assert names(tmp_path)[-1] == "fault.missed"


class Shown(Halt, StillShown):
    """A condition: what shows of it is asked for again just before it is ended."""

    vanished: tuple[int, ...] = ()
    ended_ranks: tuple[int, ...] = ()
    lost = False

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        self.said.append(f"still {victim.rank}")
        if self.lost:
            raise HelperLost("node 1")
        if victim.rank in self.vanished:
            raise FaultMissed(f"nothing is left at rank {victim.rank}")
        return {"halted": True}

    def gone(self, job: Job, victim: Victim) -> bool:
        return victim.rank in self.ended_ranks


def test_a_condition_is_looked_at_again_just_before_it_is_ended(start: Under, clock: Clock, tmp_path: Path) -> None:
    kind = Shown([FakeConnection(), FakeConnection()])
    kind.vanished = (1,)
    injection = start(kind)
    injection.inject_due(FakeJob(), RANKS)
    assert "still 0" not in kind.said
    clock.sleep(2.1)
    for _ in range(3):
        injection.inject_due(FakeJob(), RANKS)
    assert kind.said[4:] == ["still 0", "still 1", "end 0", "end 1"]
    (ending,) = read_history(tmp_path / "history").select("fault.ending")
    assert ending.data["evidence"] == [
        {"rank": 0, "pid": RANKS[0].pid, "halted": True},
        {"rank": 1, "pid": RANKS[1].pid},
    ]


class Condition(Shown):
    """The same, without an end of its own: its undo steps end it."""

    ends_by_undo = True
    stays = False

    def lasts(self, victim: Victim) -> float:
        return 1e9

    def undone(self, step: UndoStep) -> Undone:
        self.over = self.ok and not self.stays
        return super().undone(step)


@pytest.mark.parametrize(
    ("ok", "last"), [(True, ["fault.ending", "fault.healed"]), (False, ["fault.landed", "fault.ending"])]
)
def test_a_condition_without_an_end_is_healed_with_the_attempt_if_its_steps_are_undone(
    start: Under, tmp_path: Path, ok: bool, last: list[str]
) -> None:
    kind = Condition([FakeConnection(), FakeConnection()])
    kind.ok = ok
    injection = start(kind)
    injection.lasting.end_all(FakeJob())
    assert kind.said[4:] == ["still 0", "still 1", "undo halt-end"]
    assert names(tmp_path)[-2:] == last
    assert injection.lasting.healed == ({"halt"} if ok else set())


def test_a_condition_that_is_seen_after_its_steps_were_undone_is_not_healed(start: Under, tmp_path: Path) -> None:
    kind = Condition([FakeConnection(), FakeConnection()])
    kind.stays = True
    injection = start(kind)
    injection.lasting.end_all(FakeJob())
    assert names(tmp_path)[-2:] == ["fault.ending", "fault.unseen"]
    (event,) = read_history(tmp_path / "history").select("fault.unseen")
    assert "its steps are undone, and it was seen 5 s later" in event.data["why"]
    assert injection.lasting.healed == set()


@pytest.mark.parametrize("error", [FaultMissed("rank 0 has ended"), HelperLost("node 1")])
def test_a_condition_that_nobody_can_see_any_more_is_healed_by_its_steps(
    start: Under, tmp_path: Path, error: Exception
) -> None:
    class Unseen(Condition):
        def ended(self, job: Job, victim: Victim) -> bool:
            raise error

    injection = start(Unseen([FakeConnection(), FakeConnection()]))
    injection.lasting.end_all(FakeJob())
    assert names(tmp_path)[-1] == "fault.healed"
    assert injection.lasting.healed == {"halt"}


def ending(tmp_path: Path) -> dict[str, Any]:
    (event,) = read_history(tmp_path / "history").select("fault.ending")
    return event.data


def test_a_condition_without_an_end_is_looked_at_with_the_launch(start: Under, tmp_path: Path) -> None:
    kind = Condition([FakeConnection(), FakeConnection()])
    kind.vanished = (1,)
    start(kind).lasting.end_all(FakeJob())
    assert ending(tmp_path)["evidence"] == [
        {"rank": 0, "pid": RANKS[0].pid, "halted": True},
        {"rank": 1, "pid": RANKS[1].pid},
    ]
    assert "fault.unseen" in names(tmp_path)


def test_a_helper_that_is_lost_then_keeps_no_condition_from_being_ended(start: Under, tmp_path: Path) -> None:
    kind = Condition([FakeConnection(), FakeConnection()])
    kind.lost = True
    start(kind).lasting.end_all(FakeJob())
    assert ending(tmp_path)["evidence"] == []
    assert kind.said[-1] == "undo halt-end"


class OnProcess(Condition):
    """It ends together with its ranks' processes."""

    look_every = 1.0


def test_what_ends_with_a_process_is_looked_at_while_it_lasts(start: Under, clock: Clock, tmp_path: Path) -> None:
    kind = OnProcess([FakeConnection(), FakeConnection()])
    injection = start(kind)
    first = clock.mono()
    kind.said.clear()
    injection.inject_due(FakeJob(), RANKS)
    assert kind.said == []  # not a second has passed
    clock.sleep(1.1)
    kind.ended_ranks = (1,)
    injection.inject_due(FakeJob(), RANKS)
    assert kind.said == ["still 0"]
    second = clock.mono()
    injection.lasting.look(FakeJob(), at_once=True)
    third = clock.mono()
    assert kind.said == ["still 0", "still 0"]
    kind.ended_ranks = (0, 1)
    injection.lasting.end_all(FakeJob())
    answer = ending(tmp_path)["evidence"]
    looked = [one.pop("looked") for one in answer]
    assert answer == [{"rank": rank, "pid": RANKS[rank].pid, "halted": True, "ended": True} for rank in (0, 1)]
    assert looked[1] < first < second < looked[0] < third


def test_the_last_look_counts_also_where_it_shows_nothing_any_more(start: Under, clock: Clock, tmp_path: Path) -> None:
    class Taken(OnProcess):
        taken = False

        def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
            return None if self.taken else {"halted": True}

    kind = Taken([FakeConnection(), FakeConnection()])
    injection = start(kind)
    clock.sleep(1.1)
    kind.taken = True
    injection.inject_due(FakeJob(), RANKS)
    kind.ended_ranks = (0, 1)
    injection.lasting.end_all(FakeJob())
    assert ["halted" in entry for entry in ending(tmp_path)["evidence"]] == [False, False]


def test_a_fault_that_only_the_teardown_ends_is_looked_at_before(
    ledger: Ledger, history: HistoryWriter, clock: Clock, tmp_path: Path
) -> None:
    stopped = {identity(2): "stopped"}

    def stop(job: FakeJob, process: ProcessIdentity, signum: int) -> None:
        job.states[process] = "stopped"

    fault = planned(2, id="stop", kind="suspend", trigger={"elapsed": 0.0})
    injection = Injection(
        (fault,),
        {"suspend": suspend.KIND},
        history=history,
        ledger=ledger,
        attempt="train",
        patience=Patience(30, clock),
        records=tmp_path / "history",
    )
    injection.known.elapsed = 1.0
    job = FakeJob(on_signal=stop)
    injection.inject_due(job, RANKS)
    injection.lasting.end_all(job)
    assert job.states == stopped
    assert ending(tmp_path)["evidence"] == [{"rank": 2, "pid": RANKS[2].pid, "signal": 19}]
    assert [step.id for step in ledger.open_steps()] == ["stop-rank-2"]  # the teardown's
    injection.lasting.end_all(job)
    assert names(tmp_path).count("fault.ending") == 1


def test_the_evidence_of_the_landing_is_the_first_look(start: Under, clock: Clock, tmp_path: Path) -> None:
    kind = OnProcess([FakeConnection(), FakeConnection()])
    before = clock.mono()
    kind.ended_ranks = (0, 1)  # by the time of the first look after the landing
    start(kind).lasting.end_all(FakeJob())
    answer = ending(tmp_path)["evidence"]
    assert all(one["halted"] and before < one["looked"] < clock.mono() for one in answer)
