"""A process that a signal has stopped goes on, if it is the run's own, and no other does."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.wait import wait_for
from chaos.faults.action import CannotUndo, UndoContext
from chaos.faults.signals.undo import resume_process
from chaos.history.ledger import UndoStep
from chaos.machine.linux.process import identify, send_signal, state

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def context(token: str) -> UndoContext:
    return UndoContext(token, SYSTEM_CLOCK)


def step(action: str, **arguments: Any) -> UndoStep:
    return UndoStep("u1", "stop-1", action, arguments, "a note")


def test_a_stopped_process_of_the_run_goes_on(start: Start, token: str, context: UndoContext) -> None:
    identity = identify(start("sleep", "1000", run=token).pid)
    send_signal(identity, signal.SIGSTOP)
    wait_for("stopped", lambda: state(identity) == "stopped", seconds=60)
    undo = step("resume-process", **asdict(identity))
    assert resume_process(undo, context) == f"continued {identity}"
    wait_for("running", lambda: state(identity) == "alive", seconds=60)
    assert resume_process(undo, context) == f"continued {identity}"


def test_a_process_that_stays_stopped_was_not_continued(
    start: Start, token: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = identify(start("sleep", "1000", run=token).pid)
    send_signal(identity, signal.SIGSTOP)
    wait_for("stopped", lambda: state(identity) == "stopped", seconds=60)
    monkeypatch.setattr("chaos.faults.signals.undo.send_signal", lambda *_: None)  # as if another had stopped it again
    with pytest.raises(CannotUndo, match="is stopped again or still"):
        resume_process(step("resume-process", **asdict(identity)), UndoContext(token, clock))


def test_a_process_of_a_node_that_stays_stopped_was_not_continued(token: str, clock: Clock) -> None:
    helper = SimpleNamespace(resume=lambda _: None, state=lambda _: "stopped")
    nodes = SimpleNamespace(helper=lambda number: nullcontext(helper))
    context = UndoContext(token, clock, nodes=cast(Any, nodes))
    with pytest.raises(CannotUndo, match="is stopped again or still"):
        resume_process(step("resume-process", pid=5, start_time=1, boot="b", node=1), context)


def test_a_process_that_has_ended_needs_no_undoing_and_the_next_with_its_pid_is_left_alone(
    start: Start, token: str, context: UndoContext
) -> None:
    other = start("sleep", "1000", run=token)
    now = identify(other.pid)
    send_signal(now, signal.SIGSTOP)
    wait_for("stopped", lambda: state(now) == "stopped", seconds=60)
    for earlier in (replace(now, start_time=now.start_time - 1), replace(now, boot="earlier")):
        assert "has ended" in resume_process(step("resume-process", **asdict(earlier)), context)
    assert state(now) == "stopped"


def test_a_process_of_another_run_is_not_signalled(start: Start, token: str, context: UndoContext) -> None:
    for child in (start("sleep", "1000", run=token + "-other"), start("sleep", "1000")):
        identity = identify(child.pid)
        send_signal(identity, signal.SIGSTOP)
        wait_for("stopped", lambda identity=identity: state(identity) == "stopped", seconds=60)  # type: ignore[misc]
        with pytest.raises(CannotUndo, match="nothing was sent"):
            resume_process(step("resume-process", **asdict(identity)), context)
        assert state(identity) == "stopped"


@pytest.mark.parametrize("arguments", [{}, {"pid": "5", "start_time": 1, "boot": "b"}, {"pid": 5}])
def test_a_step_that_does_not_say_which_process_is_refused(context: UndoContext, arguments: dict[str, Any]) -> None:
    with pytest.raises(CannotUndo, match="does not say which process"):
        resume_process(step("resume-process", **arguments), context)
