"""A loss that only the log of a rank holds is shown while the run goes on, as the report shows it afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any

import pytest

from chaos.agent.record import Record
from chaos.evidence.artifacts import Artifacts
from chaos.history.reader import History
from chaos.live import follow
from chaos.live.state import LiveState, LossState
from chaos.observe.logs import registered
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.plan import io
from chaos.report.page.curves import curves
from tests.kit.plans import plan_with

PLAN = plan_with(loss_ranks=(1, 1))


def printed(step: int, loss: float) -> str:
    return (
        f"2026-11-27 10:00:00,{step:03} - mindformers[mindformers/core/callback/callback.py:529] - INFO - "
        f"{{ Epoch:[  1/  1], step:[{step:5}/   12], loss: {loss:.6f}, per_step_time: 3ms, lr: 1e-05, }}\n"
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose ranks print their losses and record none."""
    (tmp_path / "history").mkdir()
    (tmp_path / "plan.json").write_text(io.dumps(PLAN))
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "history" / "harness.jsonl").write_text(line("attempt.start", attempt="train"))
    for place in (tmp_path / "logs" / "train", tmp_path / "baseline" / "logs" / "train"):
        place.mkdir(parents=True)
    (tmp_path / "baseline" / "history").mkdir()
    (tmp_path / "baseline" / "source.json").write_text("{}")
    theirs = "".join(printed(step, 2 / step) for step in range(1, 13))
    (tmp_path / "baseline" / "logs" / "train" / "worker_1.log").write_text(theirs)
    return tmp_path


def line(event: str, **fields: Any) -> str:
    frame = {"seq": 0, "mono": 1, "wall": 1, "event": event, "attempt": None, "rank": None, "pid": None}
    return json.dumps(frame | fields) + "\n"


def append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def test_the_last_loss_of_the_log_is_shown_as_it_is_written(run: Path) -> None:
    log, follower = run / "logs" / "train" / "worker_1.log", follow(run)
    assert follower.state().loss is None
    append(log, printed(1, 2.0) + printed(2, 1.25)[:-1])
    state = follower.state()
    assert (state.loss, state.step) == (LossState(1, 1, 2.0, 2.0, by_log=True), 1)
    append(log, "\n")
    assert follower.state().loss == LossState(1, 2, 1.25, 1.0, by_log=True)
    assert follower.state().problems == ()


def test_it_is_the_loss_that_the_report_shows(run: Path) -> None:
    append(run / "logs" / "train" / "worker_1.log", "".join(printed(step, 2.5 / step) for step in range(1, 8)))
    shown = curves(PLAN, History(), Artifacts(run, History()))
    loss = follow(run).state().loss
    assert loss is not None and shown.baseline is not None
    at = shown.steps.index(loss.step)
    assert (loss.loss, loss.baseline) == (shown.run.loss[at], shown.baseline.loss[at])
    assert loss.step == max(step for step, value in zip(shown.steps, shown.run.loss, strict=True) if value is not None)


def test_what_the_agent_records_is_exact_and_wins(run: Path) -> None:
    append(run / "logs" / "train" / "worker_1.log", printed(3, 1.25))
    follower = follow(run)
    assert follower.state().loss == LossState(1, 3, 1.25, 0.666667, by_log=True)
    record = Record(str(run / "history"), run="r", attempt="train", rank=1)
    record.write("digest", step=2, loss=(1.5).hex())
    assert follower.state().loss == LossState(1, 2, 1.5, None)
    append(run / "logs" / "train" / "worker_1.log", printed(4, 1.0))
    loss = follower.state().loss
    assert loss is not None and not loss.by_log
    record.close()


def test_the_log_of_the_next_process_and_of_the_next_launch_is_another(run: Path) -> None:
    log, follower = run / "logs" / "train" / "worker_1.log", follow(run)
    append(log, printed(5, 0.5))
    assert shown(follower.state()) == 5
    log.rename(log.with_name("worker_1.before-1.log"))
    append(log, printed(2, 1.0))
    assert shown(follower.state()) == 2
    append(run / "history" / "harness.jsonl", line("attempt.start", attempt="resume", mono=2))
    assert shown(follower.state()) == 2, "until the next launch has printed one"
    (run / "logs" / "resume").mkdir()
    append(run / "logs" / "resume" / "worker_1.log", printed(6, 0.25))
    assert shown(follower.state()) == 6


def test_a_log_that_is_no_plain_file_is_not_read(run: Path) -> None:
    (run / "secret").write_text(printed(5, 0.5))
    (run / "logs" / "train" / "worker_1.log").symlink_to(run / "secret")
    assert follow(run).state().loss is None


class Broken(LogReader):
    """A reader of another package that cannot read."""

    name = "broken"

    def recognises(self, first_lines: object) -> bool:
        return False

    def read(self, line: str) -> LogEvent | None:
        raise ZeroDivisionError


@pytest.fixture
def broken_reader(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def others(tz: tzinfo | None = None) -> list[LogReader]:
        return [Broken()]

    monkeypatch.setattr(registered, "other_readers", others)
    yield


def test_a_reader_that_fails_is_a_problem_and_the_run_is_followed(run: Path, broken_reader: None) -> None:
    append(run / "logs" / "train" / "worker_1.log", "a line that only it could know\n")
    follower = follow(run)
    for _ in range(2):
        state = follower.state()
        assert state.problems == ("the losses in the log of rank 1 cannot be read: ZeroDivisionError: ",)
        assert len(state.ranks) == 2


def shown(state: LiveState) -> int:
    assert state.loss is not None
    return state.loss.step
