"""The pieces of which runs and attached jobs make a fault: undo on disk first, and every step has its turn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import DeadlineExpired, Patience
from chaos.faults.action import CannotUndo
from chaos.faults.kind import FaultKind, Victim
from chaos.heal.undo import UndoContext, Undone
from chaos.history.ledger import Ledger, UndoStep
from chaos.history.writer import HistoryWriteError
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import ProcessIdentity
from chaos.plan.job_effect import NONE
from chaos.run.inject.fault_record import FaultRecord, evidence_of
from chaos.run.inject.put_back import put_back
from chaos.run.inject.sequence import FaultSequence

VICTIMS = [Victim(rank, ProcessIdentity(100 + rank, 1, "boot"), Path("record"), fault="one") for rank in (0, 1)]


class OneForAll(FaultKind):
    """A fault with one undo step for all ranks, which is shown at the second look."""

    name = "one-for-all"
    effect = NONE

    def __init__(self, trace: list[str], shows: bool = True) -> None:
        self.trace = trace
        self.shows = shows
        self.looks = 0

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        return [UndoStep(f"{fault}-all", fault, "end-job", {"run": "none"}, "a note")]

    def inject(self, job: Job, victim: Victim) -> None:
        self.trace.append(f"made in {victim.rank}")

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        self.looks += 1
        return {"looks": self.looks} if self.shows and self.looks > 1 else None


class Recording:
    """A history that notes the events, and the steps that are on disk at each."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.events: list[tuple[str, dict[str, Any], list[str]]] = []

    def record(self, event: str, /, **data: Any) -> Any:
        self.events.append((event, data, [step.id for step in self.ledger.read().open]))


def sequence(kind: OneForAll, ledger: Ledger, seconds: float = 30) -> tuple[FaultSequence, Recording]:
    history = Recording(ledger)
    record = FaultRecord(history, "train", "f", "as-asked-for")
    made = FaultSequence(kind, cast(Any, None), ledger, record, Patience(seconds, SYSTEM_CLOCK), "the fault")
    return made, history


def test_the_undo_step_is_on_disk_before_the_act_is_recorded_and_done(tmp_path: Path) -> None:
    trace: list[str] = []
    made, history = sequence(OneForAll(trace), Ledger(tmp_path / "undo.jsonl"))
    made.write_undo("f", VICTIMS)
    made.act(VICTIMS[1], {"target_rank": 1}, rank=1, parameters={})
    assert trace == ["made in 1"]
    ((event, data, on_disk),) = history.events
    assert (event, on_disk) == ("fault.injecting", ["f-all"])
    assert list(data) == [
        *("attempt", "rank", "pid", "fault", "kind", "signal", "target_rank", "start_time", "parameters")
    ]
    assert (data["kind"], data["pid"]) == ("as-asked-for", 101)


def test_a_step_for_all_ranks_is_written_once_in_the_form_that_is_wanted(tmp_path: Path) -> None:
    made, _ = sequence(OneForAll([]), Ledger(tmp_path / "undo.jsonl"))
    for victim in VICTIMS:
        made.write_undo("f", [victim], lambda step: replace(step, note="another"))
    assert [(step.id, step.note) for step in made.ledger.read().open] == [("f-all", "another")]
    assert [step.id for step in made.steps] == ["f-all"]


def test_a_form_that_nobody_can_undo_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    made, _ = sequence(OneForAll([]), Ledger(tmp_path / "undo.jsonl"))
    with pytest.raises(CannotUndo, match="no package has registered the undo action 'end-jobb'"):
        made.write_undo("f", VICTIMS, lambda step: replace(step, action="end-jobb"))
    assert made.steps == [] and made.ledger.read().open == []


def test_evidence_is_looked_for_until_it_is_there(tmp_path: Path) -> None:
    made, history = sequence(OneForAll([]), Ledger(tmp_path / "undo.jsonl"))
    meanwhile: list[int] = []
    _, shown = made.await_evidence(VICTIMS[0], lambda: meanwhile.append(1))
    assert (shown, len(meanwhile)) == ({"looks": 2}, 2)
    made.record.landed([0], [evidence_of({"rank": 0}, 100, shown, {"step": 3, "phase": "begin"})])
    ((event, data, _),) = history.events
    assert (event, data["step"], data["phase"]) == ("fault.landed", 3, "begin")


def test_without_evidence_the_deadline_says_of_what(tmp_path: Path) -> None:
    made, _ = sequence(OneForAll([], shows=False), Ledger(tmp_path / "undo.jsonl"), seconds=0.01)
    with pytest.raises(DeadlineExpired, match="evidence of the fault"):
        made.await_evidence(VICTIMS[0])


def test_what_cannot_be_recorded_is_undone_and_raised_afterwards(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "undo.jsonl")
    for name in ("a", "b"):
        ledger.record(UndoStep(name, None, "end-job", {"run": "no-such-run"}))
    undone: list[str] = []

    def record(outcome: Undone) -> None:
        undone.append(outcome.step.id)
        raise HistoryWriteError(f"no space for {outcome.step.id}")

    with pytest.raises(HistoryWriteError, match="no space for b"):
        put_back(ledger, ledger.open_steps(), UndoContext("no-such-run", SYSTEM_CLOCK), record)
    assert undone == ["b", "a"]
    assert ledger.open_steps() == []
