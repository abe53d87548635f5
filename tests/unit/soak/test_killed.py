"""How far a harness has come is read from what it has recorded, at any moment and over all of its runs."""

from __future__ import annotations

from pathlib import Path

from chaos.base.clock import SYSTEM_CLOCK
from chaos.history.ledger import UndoStep
from chaos.history.writer import HistoryWriter
from chaos.soak.harness_progress import acts_of_faults, kinds_of_undo, open_undo, reached, recorded_lines
from chaos.store.directory import create_run, point_latest


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


def test_a_directory_that_is_still_being_made_is_no_run(tmp_path: Path) -> None:
    """It may get another name while the progress is read, between finding it and looking at it."""
    (tmp_path / ".making" / "history").mkdir(parents=True)
    (tmp_path / ".making" / "run.json").write_text('{"run": "r", "token": "t"}')
    (tmp_path / ".making" / "history" / "harness.jsonl").write_text("{}\n")
    assert (recorded_lines(tmp_path), reached(tmp_path)) == (0, "nothing")


def test_the_lines_of_acts_are_counted_over_all_runs_as_they_were_recorded(tmp_path: Path) -> None:
    """The run begins, makes its baseline, and goes on: its own lines come before and after those of the baseline."""
    run, baseline = create_run(tmp_path, "arf"), create_run(tmp_path, "baseline")
    point_latest(tmp_path, run.run)
    counted = []
    path = run.path / "history" / "harness.jsonl"
    with HistoryWriter(path, writer="harness", run=run.token, clock=SYSTEM_CLOCK) as history:
        history.record("run.start")
        inner = baseline.path / "history" / "harness.jsonl"
        with HistoryWriter(inner, writer="harness", run=baseline.token, clock=SYSTEM_CLOCK) as other:
            other.record("run.start")
        for event in ("armed", "injecting", "injecting", "landed", "ending", "healed"):
            history.record(f"fault.{event}", fault="one")
            counted.append((event, recorded_lines(tmp_path)))
        history.record("fault.injecting", fault="two")
        last = recorded_lines(tmp_path)
        history.record("run.end")
    lines = dict(counted)
    acts = acts_of_faults(tmp_path)
    assert list(acts) == [lines["landed"], lines["injecting"], last, lines["ending"]]
    lasted = [acts[lines[one]] for one in ("injecting", "landed", "ending")]
    assert lasted == sorted(lasted, reverse=True) and 0 < lasted[-1] < lasted[0] < 10
    assert 0 < acts[last] < 10, "one that was never put back lasts to the end"
    for made in (run, baseline):
        made.lock.release()


def test_kinds_of_undo_are_those_of_all_runs_and_the_open_ones_those_of_now(tmp_path: Path) -> None:
    assert (kinds_of_undo(tmp_path), open_undo(tmp_path)) == ([], [])
    for name, actions in (("baseline", ["end-job"]), ("kill-rank", ["end-job", "leave-group"])):
        run = create_run(tmp_path, name)
        for action in actions:
            run.ledger.record(UndoStep(action, None, action))
        run.ledger.close("end-job", "done")
        point_latest(tmp_path, run.run)
        run.lock.release()
    assert kinds_of_undo(tmp_path) == ["end-job", "leave-group"]
    assert open_undo(tmp_path) == ["leave-group"]
