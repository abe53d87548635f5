"""``chaos watch RUN`` shows a run that another process makes, until it is over."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.base.file_lock import FileLock
from chaos.cli.watch.run import watch_run
from tests.kit.runs.replayed_run import begun, recorded, replayed
from tests.unit.cli.kit import Ended


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def run(tmp_path: Path) -> Path:
    directory = recorded("plain-kill-rank", tmp_path / "recorded")
    (directory / "result.json").write_text(json.dumps({"verdict": "pass"}))
    return directory


def watched(run: Path, place: Path, *, as_json: bool = False) -> list[str]:
    """The lines about a run that goes on by a part at each look."""
    stream, parts = io.StringIO(), replayed(run, begun(run, place), parts=12)

    def go_on(seconds: float) -> None:
        next(parts, None)

    watch_run(place, stream, as_json=as_json, sleep=go_on)
    return stream.getvalue().splitlines()


def test_a_line_tells_each_change_until_the_run_is_over(run: Path, tmp_path: Path, still_alive: None) -> None:
    shown = watched(run, tmp_path / "again")
    assert "preparing" in shown[0]
    assert any(" training ==== " in line and "4 training" in line for line in shown)
    assert "ended: pass eeee step 12 of 12 plain-kill-rank: 4 ended" in shown[-1]
    assert len(shown) == len(set(shown))


def test_json_has_the_state_of_every_look(run: Path, tmp_path: Path, still_alive: None) -> None:
    states = [json.loads(line) for line in watched(run, tmp_path / "again", as_json=True)]
    assert [state["stage"] for state in states][-1] == "ended"
    assert {"train", "resume"} <= {state["stage"] for state in states}
    assert {"training", "resumed training", "ended: pass"} <= {state["stage_words"] for state in states}


@pytest.mark.parametrize("stage", ["ended", "broken off"])
def test_a_terminal_keeps_the_last_state(run: Path, stage: str) -> None:
    if stage == "broken off":
        (run / "result.json").unlink()
    terminal = Terminal()
    watch_run(run, terminal)
    assert stage in terminal.getvalue()


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_terminal_gets_its_cursor_back_however_the_watch_ends(run: Path, tmp_path: Path, number: int) -> None:
    place = begun(run, tmp_path / "again")
    lock = FileLock.try_acquire(place / ".lock")
    here, there = pty.openpty()
    command = [sys.executable, "-m", "chaos", "watch", str(place)]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(command, stdout=there, stderr=there, env=environment) as process:
        os.close(there)
        shown = b""
        while b"plain-kill-rank" not in shown:
            shown += os.read(here, 65536)
        process.send_signal(number)
        with contextlib.suppress(OSError):
            while part := os.read(here, 65536):
                shown += part
        assert process.wait() == 130
    os.close(here)
    assert lock is not None
    lock.release()
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")


@pytest.fixture
def still_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """No harness makes the run here, and it is taken for alive."""
    monkeypatch.setattr("chaos.live.follower.is_live", lambda path: True)


@pytest.mark.parametrize(
    "arguments", [(), ("latest", "--job", "1"), ("latest", "--record", "seen"), ("latest", "--checkpoints", ".")]
)
def test_either_a_run_or_a_job_is_watched(chaos: Callable[..., Ended], arguments: tuple[str, ...]) -> None:
    assert chaos("watch", *arguments).code == 64
