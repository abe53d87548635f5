"""On a terminal a line below pytest's own shows the present run; elsewhere nothing is added."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from chaos.pytest_plugin import status_line as plugin
from chaos.pytest_plugin.status_line import line, status_line
from tests.kit.live_states import live_state
from tests.unit.plugin.project import Project

pytestmark = pytest.mark.processes

_CONTROL = re.compile(r"\x1b\[[0-9;]*m")


def test_the_line_fits_the_terminal(pytestconfig: pytest.Config) -> None:
    text = _CONTROL.sub("", line(live_state(scenario="\x1b[2J[red]\n" + "x" * 200), pytestconfig))
    assert cell_len(text) < max(21, pytestconfig.get_terminal_writer().fullwidth)
    assert text.startswith("0:31 train S=xX step 6 of 12")
    assert "\x1b" not in text and "\n" not in text


def test_without_a_terminal_nothing_is_shown(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    with status_line(pytestconfig, tmp_path / "nothing"):
        pass


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
    command = [sys.executable, "-m", "pytest", "scenarios", "-p", "no:cacheprovider", "-p", "no:randomly"]
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
