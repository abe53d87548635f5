"""A soak shows its runs, its verdicts and the time that is left."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from rich.console import Console

from chaos.cli.soak.view import SoakView, open_soak_view
from chaos.live.current import Current
from chaos.live.state import CoreHolder, CoresWait
from tests.kit.runs.live_states import live_state

if TYPE_CHECKING:
    from chaos.live.current import CurrentRuns


def shown(view: SoakView, width: int = 80) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width).print(view.shown())
    return stream.getvalue().splitlines()


def test_the_runs_so_far_tell_how_long_the_rest_takes() -> None:
    now = 100.0
    view = SoakView(10, 2, lambda text: None, lambda: now)
    assert shown(view) == ["soak  0:00  0 of 10 runs"]
    now = 165.0
    view.take("pass", 60.0)
    view.take("pass", 30.0)
    view.take("fail", 60.0)
    view.take("harness failed", 50.0)
    assert shown(view, 120) == ["soak  1:05  4 of 10 runs  1 fail  1 harness failed  2 pass  about 2:30 left"]


def test_a_run_that_has_to_be_made_again_takes_time_and_does_not_count() -> None:
    view = SoakView(3, 1, lambda text: None, lambda: 0.0, "kills")
    view.take("late", 10.0, counts=False)
    assert view.left is None
    view.take("clean", 20.0)
    assert shown(view) == ["soak  0:00  1 of 3 kills  1 clean  1 late  about 1:00 left"]


def test_each_run_that_goes_on_is_shown_as_chaos_run_shows_it() -> None:
    view = SoakView(10, 2, lambda text: None, lambda: 100.0)
    holder = CoreHolder("0-1", 4711, "root", 40.0, "/reports/kill-rank-1", "chaos run kill-rank")
    wait = CoresWait(815, 70.0, 30.0, 14_400.0, (holder,))
    view.runs = cast("CurrentRuns", SimpleNamespace(now=Current((live_state(), live_state(cell="other")), (wait,))))
    rows = shown(view, 100)
    titles = [row for row in rows if "0:31 of 10:00  training  step 6 of 12" in row]
    assert [title.rpartition("  ")[2] for title in titles] == ["plain-kill-rank[victim=2]", "plain-kill-rank[other]"]
    for word in (
        "cell 2 of 5",
        "ranks   S=xX",
        "fault   kill",
        "phase   ",
        "loss    ",
        "waits   4:48 left",
        "ends    ",
    ):
        assert sum(word in row for row in rows) == 2, word
    assert rows[-2:] == [
        "waits   3:59:30 left: a core is free; process 815 has waited 0:30",
        "        cores 0-1: process 4711 of root, for 1:00: kill-rank-1",
    ]


def test_without_a_terminal_there_are_lines_only(tmp_path: Path) -> None:
    stream = io.StringIO()
    with open_soak_view(lambda: (tmp_path,), 3, 1, stream) as view:
        view.take("pass", 1.0)
        view.say("pass              1.0 s  kill-rank")
    assert stream.getvalue() == "pass              1.0 s  kill-rank\n"
