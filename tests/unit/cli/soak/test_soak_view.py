"""A soak shows its runs, its verdicts and the time that is left."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from rich.console import Console

from chaos.cli.soak.view import SoakView, open_soak_view
from tests.kit.live_states import live_state

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
    view.take(None, 50.0)
    assert shown(view, 120) == ["soak  1:05  4 of 10 runs  1 fail  1 harness failed  2 pass  about 2:30 left"]


def test_each_run_that_goes_on_is_a_line() -> None:
    view = SoakView(10, 2, lambda text: None, lambda: 0.0)
    view.runs = cast("CurrentRuns", SimpleNamespace(states=(live_state(), live_state(scenario="other"))))
    _, first, second = shown(view)
    assert first == "0:31 train S=xX step 6 of 12 save 17.0 s of 15 s 1 unplanned plain-kill-rank[vi…"
    assert second.endswith("other[victim=2]")


def test_without_a_terminal_there_are_lines_only(tmp_path: Path) -> None:
    stream = io.StringIO()
    with open_soak_view(tmp_path, 3, 1, stream) as view:
        view.take("pass", 1.0)
        view.say("pass              1.0 s  kill-rank")
    assert stream.getvalue() == "pass              1.0 s  kill-rank\n"
