"""What a watcher sees: plain lines, without colours, and never a failure of the run because nobody looks."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from chaos.cli.headlines import Headlines, headline
from chaos.cli.progress import LiveProgress, PlainProgress, open_progress
from chaos.history.event import Event

SECOND = 1_000_000_000


def event(_event: str, mono: float = 0, rank: int | None = None, **data: Any) -> Event:
    """An event of the faulted launch."""
    return Event(_event, int(mono * SECOND), 0, "harness", 0, attempt="train", rank=rank, data=data)


def test_plain_lines_tell_what_matters_with_its_time() -> None:
    stream = io.StringIO()
    with open_progress(stream=stream) as progress:
        progress.note("seed 5")
        progress.event(event("run.start", 10, run="r1", seed=1))
        progress.event(event("step.begin", 11, rank=0, step=1))
        progress.event(event("fault.landed", 12.5, fault="kill-1", ranks=[2], step=6, phase="forward"))
        progress.event(event("rank.exit", 13, rank=2, signal=9, code=None))
    assert stream.getvalue().splitlines() == [
        "seed 5",
        "   0.0 s  run r1, seed 1",
        "   2.5 s  fault kill-1: landed on rank 2 at step 6, forward",
        "   3.0 s  train: rank 2 ended with signal 9",
    ]


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (event("attempt.start"), "train: started"),
        (event("attempt.end"), "train: ended"),
        (event("train.begin", rank=1, initial_step=0), "train: rank 1 begins to train after step 0"),
        (event("fault.armed", fault="k", ranks=[1, 2]), "fault k: armed for ranks 1-2"),
        (event("fault.missed", fault="k", reason="too late"), "fault k: missed, too late"),
        (event("fault.healed", fault="k", how="continued"), "fault k: undone, continued"),
        (
            event("checkpoint.end", rank=0, kind="end-of-life", step=5),
            "train: rank 0 has saved its end-of-life checkpoint of step 5",
        ),
        (event("checkpoint.end", rank=0, kind="periodic", step=5), None),
        (
            event("deadline.expired", name="start", seconds=180, detail="rank 3 is missing"),
            "deadline start of 180 s has passed: rank 3 is missing",
        ),
        (event("run.end", interrupted=False, error=None), "run ended"),
        (event("digest", rank=0), None),
    ],
)
def test_events_have_headlines(one: Event, text: str | None) -> None:
    assert headline(one) == text


def test_a_reader_that_leaves_does_not_end_the_run() -> None:
    class Closed(io.StringIO):
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            raise BrokenPipeError

    stream = Closed()
    progress = PlainProgress(stream)
    progress.note("one")
    progress.note("two")
    assert stream.writes == 1


def test_what_very_many_ranks_do_alike_is_one_line() -> None:
    """Also where what one rank has done for a long time is read before anything of the next one."""
    lines: list[str] = []
    now = 0.0
    headlines = Headlines(lines.append, lambda: now)
    headlines.event(event("attempt.start", 10))
    for rank in range(128):
        headlines.event(event("rank.found", 11, rank=rank))
    for rank in range(128):
        headlines.event(event("train.begin", 12 + rank / 1000, rank=rank, initial_step=0))
        for step in range(1, 6):
            headlines.event(event("step.begin", 12 + 2 * step, rank=rank, step=step))
    headlines.event(event("fault.landed", 22.5, fault="kill-1", ranks=[2], step=6, phase="forward"))
    headlines.event(event("rank.exit", 23, rank=2, signal=9, code=None))
    for rank in [0, 1, *range(3, 127)]:
        headlines.event(event("rank.exit", 23.5, rank=rank, signal=None, code=1))
    assert len(lines) == 3
    now = 1.5
    headlines.event(event("rank.exit", 25, rank=127, signal=None, code=1))
    headlines.flush()
    assert lines == [
        "   0.0 s  train: started",
        "   2.0 s  train: ranks 0-127 (128 in all) begin to train after step 0",
        "  12.5 s  fault kill-1: landed on rank 2 at step 6, forward",
        "  13.0 s  train: rank 2 ended with signal 9",
        "  13.0 s  train: ranks 0-1,3-126 (126 in all) ended with code 1",
        "  15.0 s  train: rank 127 ended with code 1",
    ]


def test_nothing_that_is_held_back_is_lost_at_the_end() -> None:
    stream = io.StringIO()
    with open_progress(stream=stream) as progress:
        for rank in range(17):
            progress.event(event("rank.found", rank=rank))
        for rank in range(17):
            progress.event(event("rank.exit", 1, rank=rank, signal=None, code=0))
        assert stream.getvalue() == ""
    assert stream.getvalue() == "   1.0 s  train: ranks 0-16 (17 in all) ended with code 0\n"


def test_what_is_held_back_is_told_before_a_note() -> None:
    stream = io.StringIO()
    progress = PlainProgress(stream)
    for rank in range(17):
        progress.event(event("rank.found", rank=rank))
    for rank in range(3):
        progress.event(event("train.begin", 1, rank=rank, initial_step=0))
    assert stream.getvalue() == ""
    progress.note("nothing has moved for 10 s")
    assert stream.getvalue().splitlines() == [
        "   1.0 s  train: ranks 0-2 begin to train after step 0",
        "nothing has moved for 10 s",
    ]


def test_the_table_has_a_row_for_each_rank() -> None:
    view = LiveProgress()
    for rank in range(4):
        view.event(event("rank.found", rank=rank))
    view.event(event("step.begin", rank=1, step=6))
    view.event(event("barrier.reached", rank=1, phase="forward"))
    view.event(event("rank.exit", rank=2, signal=9, code=None))
    rows = shown(view)
    assert rows[:4] == ["rank attempt step state", "0 train starting", "1 train 6 held at forward", "2 train dead"]
    assert len(rows) == 5


def test_the_table_of_very_many_ranks_has_a_row_for_those_in_the_same_state() -> None:
    view = LiveProgress()
    for rank in range(128):
        view.event(event("rank.found", rank=rank))
    for rank in range(64):
        view.event(event("step.begin", rank=rank, step=6))
    view.event(event("rank.exit", rank=2, signal=9, code=None))
    assert shown(view) == [
        "ranks attempt step state",
        "0-1,3-63 train 6 training",
        "2 train 6 dead",
        "64-127 train starting",
    ]


def shown(view: LiveProgress) -> list[str]:
    """The rows of its table."""
    console = Console(file=io.StringIO(), width=80)
    console.print(view.table())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return [" ".join(line.split()) for line in text.splitlines()]
