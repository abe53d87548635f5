"""The pause: asked of the controller, proven by the ranks' own records, and seen to have ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.faults.device_errors import ecc, uce
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.pause import pause
from chaos.faults.pause.paused import paused_at
from chaos.faults.pause.undo import continue_training
from chaos.heal.undo import CannotUndo, UndoContext
from chaos.machine.linux.process import ProcessIdentity
from tests.unit.run.fakes import FakeJob, identity


class Fields:
    """Whoever is told something: keeps it."""

    def __init__(self, there: bool = True) -> None:
        self.messages: list[dict[str, Any]] = []
        self.there = there

    def __call__(self, message: dict[str, Any]) -> bool:
        self.messages.append(message)
        return self.there


def write(path: Path, *events: dict[str, Any]) -> Path:
    with path.open("a") as file:
        file.writelines(json.dumps(event, separators=(",", ":")) + "\n" for event in events)
    return path


def passed(step: int) -> list[dict[str, Any]]:
    return [{"event": "pause.enter", "step": step}, {"event": "pause.exit", "step": step}]


SYNC = {"event": "handler.exit", "name": "stream_sync", "ok": True}


def victim(record: Path, controller: Fields, worker: Fields | None = None, **parameters: Any) -> Victim:
    return Victim(
        1,
        identity(1),
        record,
        fault="pause",
        parameters=parameters,
        tell_controller=controller,
        tell_worker=worker or Fields(),
    )


def test_a_rank_is_paused_once_the_sdk_has_noticed_that_it_is(tmp_path: Path) -> None:
    record = write(tmp_path / "record", *passed(4))
    assert paused_at(record) is None
    write(record, {"event": "pause.enter", "step": 5})
    assert paused_at(record) is None  # every rank comes here after every step
    write(record, SYNC)
    assert paused_at(record) == 5
    write(record, {"event": "pause.exit", "step": 5})
    assert paused_at(record) is None
    write(record, {"event": "pause.enter", "step": 6})
    assert paused_at(record) is None  # noticed at step 5, not here


def test_the_pause_is_asked_of_the_controller_and_proven_by_the_rank(tmp_path: Path) -> None:
    record = write(tmp_path / "record", {"event": "pause.enter", "step": 5})
    controller, job = Fields(), FakeJob()
    one = victim(record, controller, seconds=2)
    pause.KIND.inject(job, one)
    assert controller.messages == [{"message": "pause", "fault": "pause", "limit": 62}]
    assert pause.KIND.evidence(job, one) is None
    write(record, SYNC)
    assert pause.KIND.evidence(job, one) == {"signal": None, "paused": 5}
    assert pause.KIND.lasts(one) == 2.0
    assert not pause.KIND.ended(job, one)
    pause.KIND.end(one)
    assert controller.messages[1] == {"message": "continue", "fault": "pause"}
    write(record, {"event": "pause.exit", "step": 5})
    assert pause.KIND.ended(job, one)


def test_without_a_controller_that_takes_orders_there_is_no_pause(tmp_path: Path) -> None:
    with pytest.raises(FaultMissed, match="is TSP on, and the controller started"):
        pause.KIND.inject(FakeJob(), victim(tmp_path / "record", Fields(there=False)))


def test_the_network_is_switched_once_all_are_paused_and_before_they_go_on(tmp_path: Path) -> None:
    record, worker = write(tmp_path / "record", {"event": "pause.enter", "step": 5}, SYNC), Fields()
    plain, switching = victim(record, Fields(), worker), victim(record, Fields(), worker, switch=True)
    pause.KIND.note_landing(plain)
    assert worker.messages == []
    assert pause.KIND.may_end(FakeJob(), plain)
    pause.KIND.note_landing(switching)
    assert worker.messages == [{"message": "switch", "fault": "pause"}]
    assert not pause.KIND.may_end(FakeJob(), switching)
    write(record, {"event": "network.switched", "fault": "pause", "ok": True})
    assert pause.KIND.may_end(FakeJob(), switching)


def test_undoing_a_pause_sees_that_the_ranks_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = write(tmp_path / "record", {"event": "pause.enter", "step": 5}, SYNC)
    (step,) = pause.KIND.undo_steps("pause", [victim(record, Fields())])
    context = UndoContext("run-1", SYSTEM_CLOCK)
    monkeypatch.setattr("chaos.faults.pause.undo._CONTINUE_SECONDS", 0.05)
    monkeypatch.setattr("chaos.faults.pause.undo.state", lambda process: "alive")
    with pytest.raises(CannotUndo, match=r"still paused after .*101.* after step 5"):
        continue_training(step, context)
    monkeypatch.setattr("chaos.faults.pause.undo.state", lambda process: "gone")
    assert continue_training(step, context) == "no rank is paused"
    monkeypatch.setattr("chaos.faults.pause.undo.state", lambda process: "alive")
    write(record, {"event": "pause.exit", "step": 5})
    assert continue_training(step, context) == "no rank is paused"


def test_a_memory_error_carries_its_strategy_and_an_ecc_error_its_time() -> None:
    answers: list[dict[str, Any]] = []
    who = ProcessIdentity(1, 1, "boot")
    uce.KIND.inject(FakeJob(), Victim(3, who, Path("record"), answers.append))
    uce.KIND.inject(FakeJob(), Victim(3, who, Path("record"), answers.append, parameters={"strategy": "low level"}))
    ecc.KIND.inject(FakeJob(), Victim(3, who, Path("record"), answers.append))
    assert [answer["strategy"] for answer in answers] == ["RS_UCE_HIGHLEVEL", "RS_UCE_LOWLEVEL", "RS_UCE_HIGHLEVEL"]
    text = answers[2]["text"]
    assert text.startswith(
        "UCEError error occurs when execute, error_code=507054. HBM MULTI BIT ECC, Uncorrectable ECC"
    )
    assert "device_id=3, event_id=0x80e01801, time us=" in text
    assert int(text.rpartition("time us=")[2].rstrip(".")) > 0
