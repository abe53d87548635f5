"""Defects of how processes end."""

from __future__ import annotations

import os
import subprocess
import threading
from typing import Any

from chaos.agent.start import Agent
from chaos.selftest.live.acted import acted
from chaos.selftest.live.change import RESUME, replaces

_EXITING = "exiting"


def orphan(agent: Agent) -> None:
    """Let a rank that exits leave a process behind, in a session of its own."""

    @replaces(agent, "chaos.rehearsal.finished_ranks", "note")
    def note(original: Any, end: str, rank: int) -> None:
        original(end, rank)
        if end == _EXITING:
            acted(agent, "a process is left behind")
            subprocess.Popen(["sleep", "3600"], start_new_session=True)


def hidden_orphan(agent: Agent) -> None:
    """Let a rank that exits leave a process behind that has nothing of the run in its environment."""

    @replaces(agent, "chaos.rehearsal.finished_ranks", "note")
    def note(original: Any, end: str, rank: int) -> None:
        original(end, rank)
        if end == _EXITING:
            acted(agent, "a process without anything of the run is left behind")
            subprocess.Popen(["sleep", "3601"], start_new_session=True, env={"PATH": os.defpath}, cwd="/")


def hangs_at_exit(agent: Agent) -> None:
    """Let a rank that is ordered to exit stay for ever."""

    @replaces(agent, "chaos.rehearsal.finished_ranks", "note")
    def note(original: Any, end: str, rank: int) -> None:
        original(end, rank)
        if end == _EXITING:
            acted(agent, "it does not exit")
            threading.Event().wait()


def hangs_after_training(agent: Agent) -> None:
    """Let rank 1 of the resumed job train to its last step, and not end."""
    if agent.configuration.attempt != RESUME:
        return

    @replaces(agent, "chaos.rehearsal.finished_ranks", "note")
    def note(original: Any, end: str, rank: int) -> None:
        original(end, rank)
        if end == "trained" and rank == 1:
            acted(agent, "it does not end after its last step")
            threading.Event().wait()
