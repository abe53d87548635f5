"""How far a harness has come is read from what it has recorded, at any moment and over all of its runs."""

from __future__ import annotations

from pathlib import Path

from chaos.history.clock import SYSTEM_CLOCK
from chaos.history.writer import HistoryWriter
from chaos.run.directory import create_run, point_latest
from chaos.run.killed import reached, recorded_lines


def test_lines_and_the_last_event_are_of_all_runs(tmp_path: Path) -> None:
    assert (recorded_lines(tmp_path), reached(tmp_path)) == (0, "nothing")
    for name, events in (("baseline", ["run.start"]), ("kill-rank", ["run.start", "fault.landed"])):
        run = create_run(tmp_path, name)
        assert reached(tmp_path) == ("nothing" if name == "baseline" else "run: run.start")
        point_latest(tmp_path, run.run)
        path = run.path / "history" / "harness.jsonl"
        with HistoryWriter(path, writer="harness", run=run.token, clock=SYSTEM_CLOCK) as history:
            for event in events:
                history.record(event, attempt="train" if event.startswith("fault") else None)
        run.lock.release()
    assert (recorded_lines(tmp_path), reached(tmp_path)) == (5, "train: fault.landed")
