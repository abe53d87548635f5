"""On a terminal lines below pytest's own show the present run; elsewhere nothing is added."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from rich.cells import cell_len

from chaos.live.current import Current
from chaos.live.state import CoresWait, LiveState
from chaos.live.terminal.panel import lines as panel_lines
from chaos.pytest_plugin import status_line as plugin
from chaos.pytest_plugin.status_line import lines, status_line
from tests.kit.runs.live_states import live_state
from tests.unit.plugin.project import Project

pytestmark = pytest.mark.processes

_CONTROL = re.compile(r"\x1b\[[0-9;]*m")


def shown(state: LiveState, columns: int, height: int, *waits: CoresWait) -> list[str]:
    current = Current((state,), waits)
    return [_CONTROL.sub("", text) for text in lines(current, os.terminal_size((columns, height)), colours=True)]


@pytest.mark.parametrize(("height", "count"), [(3, 1), (8, 1), (12, 4), (24, 8), (200, 8)])
def test_the_lines_fit_the_terminal(height: int, count: int) -> None:
    texts = shown(live_state(scenario="\x1b[2J[red]\n" + "x" * 200), 80, height)
    assert len(texts) == count
    assert all(cell_len(text) < 80 and "\x1b" not in text and "\n" not in text for text in texts)
    assert "0:31" in texts[0] and "cell 2 of 5" in texts[0] and "training" in texts[0]


def test_a_test_shows_what_chaos_run_shows() -> None:
    wait = CoresWait(815, 70.0, 30.0, 14_400.0)
    assert shown(live_state(), 120, 24) == [text.plain for text in panel_lines(live_state(), 40)]
    assert shown(live_state(), 120, 24, wait)[-1].startswith("waits   3:59:30 left: a core is free")


def test_without_a_terminal_nothing_is_shown(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    with status_line(pytestconfig, tmp_path / "nothing"):
        pass


def test_a_look_that_is_stuck_is_not_waited_for_and_writes_nothing_afterwards(
    pytestconfig: pytest.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = pty.openpty()
    monkeypatch.setattr(plugin, "_terminal", lambda config: os.fdopen(there, "w", encoding="utf-8"))
    looking, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def stuck(current: Current, size: os.terminal_size, colours: bool) -> list[str]:
        looking.set()
        go_on.wait()
        over.set()
        return ["too late"]

    monkeypatch.setattr(plugin, "lines", stuck)
    joined: list[str] = []
    with monkeypatch.context() as patched, plugin.status_line(pytestconfig, tmp_path):
        assert looking.wait(120)
        patched.setattr(threading.Thread, "join", lambda thread, timeout=None: joined.append(thread.name))
    assert joined == []
    go_on.set()
    assert over.wait(120)
    written = b""
    with contextlib.suppress(OSError):
        while part := os.read(here, 65536):
            written += part
    os.close(here)
    assert b"too late" not in written


def test_a_terminal_that_has_gone_fails_no_test(
    pytestconfig: pytest.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = pty.openpty()
    monkeypatch.setattr(plugin, "_terminal", lambda config: os.fdopen(there, "w", encoding="utf-8"))
    with plugin.status_line(pytestconfig, tmp_path):
        os.close(here)


@pytest.mark.parametrize(("terminal", "lines"), [("xterm", True), ("dumb", False)])
def test_pytest_says_the_same_with_and_without_the_line(project: Project, terminal: str, lines: bool) -> None:
    """What is written below is erased, and the cursor goes back. A terminal that moves no cursor gets no line."""
    project.answer("pass", 0)
    here, there = pty.openpty()
    command = [sys.executable, "-m", "pytest", "scenarios", "-p", "no:cacheprovider"]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    alone["TERM"] = terminal
    with subprocess.Popen(command, cwd=project.pytester.path, env=alone, stdout=there, stderr=there) as process:
        os.close(there)
        shown = b""
        while True:
            try:
                shown += os.read(here, 65536)
            except OSError:
                break
        process.wait()
    os.close(here)
    assert shown.count(b"\x1b7") == shown.count(b"\x1b8")
    assert (b"\x1b7" in shown) == lines
    assert b"1 passed" in shown
