"""What a watcher sees: plain lines, without colours, and never a failure of the run because nobody looks."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from threading import Event as Signal
from threading import Thread
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console, Group
from rich.live import Live

from chaos.base.wait import wait_for
from chaos.cli.headlines import Headlines, headline
from chaos.cli.progress import LiveProgress, PlainProgress, open_progress
from chaos.history.event import Event
from chaos.live.state import CoreHolder
from tests.kit.runs.replayed_run import recorded

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
        (
            event("hook.begin", stage="before", number=1, command=["./prepare", "a b"], limit=60.0),
            "hook before 1: runs ./prepare 'a b', 60 s at most",
        ),
        (event("check.begin", check="losses:falls"), "check losses:falls: runs"),
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
        (
            event("wait.begin", name="end", goal="every rank ends", seconds=300.0),
            "train: waits until every rank ends, 300 s at most",
        ),
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


WAIT = event("wait.begin", name="start", goal="every rank begins its first step", seconds=180.0)


def test_a_run_is_shown_from_the_first_wait_of_its_driver_on(tmp_path: Path) -> None:
    now = 100.0
    view = LiveProgress(lambda: now)
    run = recorded("plain-kill-rank", tmp_path / "run")
    assert shown(view) == []
    view.follow(run)
    now = 103.5
    assert shown(view) == ["0:03  preparing  run"]
    view.event(event("attempt.start"))
    assert view._looking is None, "the job is started next"
    view.event(WAIT)
    rows = wait_for("the first look", lambda: rows if len(rows := shown(view)) > 1 else None, seconds=120)
    assert "plain-kill-rank" in rows[0]
    assert rows[1].split() == ["ranks", "eeee"]
    view.follow(tmp_path / "another")
    assert shown(view) == ["0:00  preparing  another"]
    view.close()


def test_a_run_that_waits_for_the_fault_free_run_of_another_harness_is_shown(tmp_path: Path) -> None:
    stream = io.StringIO()
    awaited = event("baseline.awaited", maker=None)
    PlainProgress(stream).event(awaited)
    assert "another process makes the fault-free run of this job: it has left no record" in stream.getvalue()
    view = LiveProgress()
    view.follow(recorded("plain-kill-rank", tmp_path / "run"))
    view.event(awaited)
    wait_for("the first look", lambda: len(shown(view)) > 1, seconds=120)
    view.close()


def test_a_view_that_is_being_imported_keeps_no_driver_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    importing, go_on = Signal(), Signal()

    class Slow(ModuleType):
        def __getattr__(self, name: str) -> object:
            importing.set()
            go_on.wait()
            raise ImportError(name)

    monkeypatch.setitem(sys.modules, "chaos.live.follower", Slow("chaos.live.follower"))
    view = LiveProgress()
    view.follow(tmp_path)
    view.event(WAIT)  # would not return
    assert importing.wait(120)
    view.note("the driver goes on")
    view.close()
    go_on.set()


def test_a_run_that_waits_for_cores_tells_how_long_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = CoreHolder("0-1", 4711, "root", 0.0, "/reports/kill-rank-1", "chaos run")
    monkeypatch.setattr("chaos.live.holders.waiting_for_cores", lambda: (holder,))
    now = 1_000.0
    view = LiveProgress(lambda: now)
    view.wait_for_cores("every core is leased", 14_400)
    now = 1_030.0
    first, second = shown(view)
    assert first.startswith("waits   3:59:30 left: a core is free; process ")
    assert "process 4711 of root" in second and second.endswith("kill-rank-1")
    stream = io.StringIO()
    PlainProgress(stream).wait_for_cores("every core is leased", 14_400)
    assert stream.getvalue() == "every core is leased; it waits 4 h at most\n"


def test_a_view_that_breaks_is_no_failure_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "plan.json").mkdir()
    (tmp_path / "run.json").write_text("[")
    (tmp_path / "history").symlink_to("/proc/self/fd")
    view = LiveProgress()
    view.follow(tmp_path)
    view.event(WAIT)
    wait_for("a look", lambda: view._looking and view._looking.state, seconds=120)
    assert shown(view)
    view.close()


def test_a_view_that_cannot_be_drawn_says_so_and_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is drawn a last time where the run ends, in the run's own thread."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def fails(self: LiveProgress) -> Group:
        raise ZeroDivisionError

    monkeypatch.setattr(LiveProgress, "shown", fails)
    stream = Terminal()
    with open_progress(stream=stream) as progress:
        progress.note("seed 5")
    assert "seed 5" in stream.getvalue()
    assert "the view has failed (ZeroDivisionError); the run goes on" in stream.getvalue()


def test_a_user_without_another_thread_has_a_run_without_a_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(self: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Thread, "start", no_more)
    view = LiveProgress()
    view.follow(tmp_path)
    view.event(WAIT)
    assert "preparing" in shown(view)[0]
    view.close()


def test_a_terminal_that_has_gone_is_written_to_no_more() -> None:
    class Gone:
        prints = 0

        def print(self, *texts: object, **options: object) -> None:
            self.prints += 1
            raise BrokenPipeError

    console, view = Gone(), LiveProgress()
    view.attach(cast("Live", SimpleNamespace(console=console)))
    view.note("one")
    view.note("two")
    assert console.prints == 1


def shown(view: LiveProgress) -> list[str]:
    """The lines of the run."""
    console = Console(file=io.StringIO(), width=80)
    console.print(view.shown())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return [line for line in text.splitlines() if line.strip()]
