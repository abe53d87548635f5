"""A job that cannot start: the error names rank, port or controller, says what to do, and nothing is left."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rehearsal.kit import Chaos, Run

SCENARIO = """\
chaos: 1
name: start-error
baseline: none
cluster:
  ranks: 4
job:
  steps: 4
  protection: [TTP]
  {job}
"""

QUICK_SECONDS = 90.0
"""Much less than the deadline of a start (180 s), and enough for a busy machine to import MindSpore."""

JOIN_SECONDS = 60.0
"""How long ranks wait for the others to join."""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Another program's listener; it takes connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield listening


def fail_to_start(chaos: Chaos, tmp_path: Path, job: str, *, within_seconds: float = QUICK_SECONDS) -> tuple[Run, str]:
    """Run a job that cannot start; returns its run and the error, after looking for what is left."""
    scenario = tmp_path / "start-error.yaml"
    scenario.write_text(SCENARIO.format(job=job), "utf-8")
    done = chaos.run(scenario)
    assert done.code == 2, done.errors
    run = done.run
    (start,), (end,) = (run.history.select(name) for name in ("attempt.start", "run.end"))
    assert (end.mono - start.mono) / 1e9 < within_seconds
    assert run.left() == []
    (hygiene,) = run.history.select("hygiene")
    assert (hygiene.data["orphans"], hygiene.data["ports"], hygiene.data["private_left"]) == ([], [], False)
    return run, str(end.data["error"])


@pytest.mark.nightly
def test_a_port_in_use_is_named_with_the_rank_that_wanted_it(
    fresh: Chaos, tmp_path: Path, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    run, error = fail_to_start(fresh, tmp_path, f"environment: {{MS_TFT_PORT: '{port}'}}")
    assert "ended with exit code 2 after" in error and "before every rank had begun its first step" in error
    assert f"the controller cannot listen on 127.0.0.1:{port}: [Errno 98] Address already in use" in error
    assert "end the program that listens there, or choose another MS_TFT_PORT" in error
    assert str(run.path / "logs" / "train") in error


def test_a_job_that_dies_at_import_is_quoted(fresh: Chaos, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import a_module_that_nobody_has\n", "utf-8")
    _, error = fail_to_start(fresh, tmp_path, "script: train.py")
    assert "before every rank had begun its first step" in error
    assert "ModuleNotFoundError: No module named 'a_module_that_nobody_has'" in error
    assert "logs/train" in error


@pytest.mark.nightly
def test_a_controller_that_is_none_of_this_run_is_named(fresh: Chaos, tmp_path: Path, listener: socket.socket) -> None:
    """The ranks reach another program: it hangs up as soon as they have introduced themselves."""

    def hang_up() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.recv(10)
            connection.close()

    threading.Thread(target=hang_up, daemon=True).start()
    port = listener.getsockname()[1]
    _, error = fail_to_start(fresh, tmp_path, f"controller: outside\n  environment: {{MS_TFT_PORT: '{port}'}}")
    assert f"127.0.0.1:{port} is not the controller of this run; another program listens on that port" in error


@pytest.mark.nightly
def test_a_controller_that_never_answers_is_named(fresh: Chaos, tmp_path: Path, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    _, error = fail_to_start(fresh, tmp_path, f"controller: outside\n  environment: {{MS_TFT_PORT: '{port}'}}")
    assert f"the controller at 127.0.0.1:{port} took the connection and did not answer for" in error
    assert "see the log of the process that hosts it" in error


HANGS = """\
import os
import signal

from mindspore.communication import init

if os.environ["MS_NODE_ID"] == "2":
    signal.pause()
init()
"""


@pytest.mark.nightly
def test_a_rank_that_does_not_join_is_named_by_the_others(fresh: Chaos, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HANGS, "utf-8")
    within = QUICK_SECONDS + JOIN_SECONDS
    _, error = fail_to_start(fresh, tmp_path, "script: train.py", within_seconds=within)
    assert "before every rank had begun its first step" in error
    assert f"waited {JOIN_SECONDS:g} s for rank 2 to join the communicator" in error
