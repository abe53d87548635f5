"""Fixtures of the agent's tests: a history directory, a fake MindSpore, and every Python that the agent must run on."""

from __future__ import annotations

import functools
import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from chaos.agent.record import Record
from chaos.history.event import Event
from chaos.history.reader import read_history
from tests.kit.own_record import own_record

FAKE_JOB = Path(__file__).parent.parent / "fake_job"
TREE = Path(__file__).parents[3] / "chaos"


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history"
    path.mkdir()
    return path


@pytest.fixture
def record(history: Path) -> Iterator[Record]:
    with own_record(history, run="run-1", rank=3) as record:
        yield record


Events = Callable[..., list[Event]]


@pytest.fixture
def events(history: Path) -> Events:
    """What the history's own reader finds: ``events("step.begin")``. Damage of any kind is a failure."""

    def events(name: str | None = None, **match: Any) -> list[Event]:
        read = read_history(history)
        assert read.problems == ()
        return read.select(name, **match)

    return events


@pytest.fixture(params=["this Python", "Python 3.9"])
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter that the agent must run on."""
    if request.param == "this Python":
        return sys.executable
    found = find_python39()
    if found is None:
        pytest.skip("there is no Python 3.9 on this machine, on the PATH or under pyenv: the agent is not run on it")
    return found


@functools.cache
def find_python39() -> str | None:
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))  # noqa: PTH111
    candidates = [shutil.which("python3.9"), *glob.glob(f"{pyenv}/versions/3.9*/bin/python3.9")]  # noqa: PTH207
    return next((path for path in candidates if path and _is_python39(path)), None)


def _is_python39(path: str) -> bool:
    # A shim of pyenv is on the PATH also where its version is not chosen.
    done = subprocess.run([path, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True)
    return done.stdout.strip() == "(3, 9)"


def calls(work: Callable[[], object]) -> list[str]:
    """Do the work and name all functions that were called in it, those of C among them: its cost on any machine."""
    names: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            names.append(frame.f_code.co_name if event == "call" else argument.__name__)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return names[1:-1]  # the work itself, and the call that ends the counting
