"""A job, a channel and a rank's connection that do what a test says, for the parts that drive them."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.history.event import Event
from chaos.machine.job.ending import Ended
from chaos.machine.job.processes import FoundProcess
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import ProcessIdentity, State
from chaos.plan.parts.fault import PlannedFault
from chaos.run.launch.channel import AtBarrier, Message

LAUNCHER = ProcessIdentity(50, 1, "boot")


def identity(rank: int) -> ProcessIdentity:
    """The process of a rank: PIDs from 100."""
    return ProcessIdentity(100 + rank, 1000 + rank, "boot")


def found(rank: int, attempt: str = "train") -> FoundProcess:
    return FoundProcess(identity(rank), LAUNCHER.pid, 100 + rank, "rank", rank, attempt, ("python", "job.py"))


@dataclass
class FakeJob:
    """A job of ``size`` ranks. ``on_signal`` says how a process answers to a signal; by default it ends by it."""

    size: int = 4
    statuses: dict[ProcessIdentity, ExitStatus] = field(default_factory=dict)
    states: dict[ProcessIdentity, State] = field(default_factory=dict)
    signals: list[tuple[int, int]] = field(default_factory=list)
    on_signal: Callable[[FakeJob, ProcessIdentity, int], None] | None = None
    others: list[FoundProcess] = field(default_factory=list)
    launcher_stays: bool = False
    looks: int = 0

    @property
    def launcher(self) -> ProcessIdentity:
        return LAUNCHER

    def processes(self) -> list[FoundProcess]:
        self.looks += 1
        ranks = [found(rank) for rank in range(self.size) if identity(rank) not in self.statuses]
        return [*self.others, *ranks]

    def state(self, process: ProcessIdentity) -> State:
        return "gone" if process in self.statuses else self.states.get(process, "alive")

    def exit_status(self, process: ProcessIdentity) -> ExitStatus | None:
        if process == LAUNCHER and process not in self.statuses and not self.launcher_stays and self.statuses:
            return ExitStatus(code=0)  # msrun without an agent has ended long before its ranks do
        return self.statuses.get(process)

    def signal(self, process: ProcessIdentity, signum: int) -> None:
        if process.pid < 100:
            raise PlatformError(f"{process} is not of this job")
        self.signals.append((process.pid, signum))
        if self.on_signal is not None:
            self.on_signal(self, process, signum)
        else:
            self.statuses[process] = ExitStatus(signal=int(signum))

    def stop(self, grace_seconds: float) -> Ended:
        return Ended((), ())


class FakeConnection:
    """The connection of one rank: keeps what it was answered."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = []
        self.closed = False

    def answer(self, message: dict[str, Any]) -> None:
        self.answers.append(message)

    def close(self) -> None:
        self.closed = True


class FakeChannel:
    """A channel whose messages a test puts in."""

    def __init__(self) -> None:
        self.messages: queue.SimpleQueue[Message] = queue.SimpleQueue()


class Watcher:
    """A live view that keeps what it is shown."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.notes: list[str] = []
        self.followed: list[Path] = []
        self.on_event: Callable[[Event], None] = lambda event: None

    def note(self, text: str) -> None:
        self.notes.append(text)

    def event(self, event: Event) -> None:
        self.events.append(event)
        self.on_event(event)

    def follow(self, run_dir: Path) -> None:
        self.followed.append(run_dir)

    def wait_for_cores(self, reason: str, seconds: float) -> None:
        self.note(reason)


def at_barrier(
    connection: FakeConnection, rank: int, fault: str = "kill", *, step: int = 5, phase: str = "step.end"
) -> AtBarrier:
    return AtBarrier(connection, "train", rank, fault, step, phase)  # type: ignore[arg-type]


def planned(*ranks: int, id: str = "kill", kind: str = "kill", trigger: dict[str, Any] | None = None) -> PlannedFault:
    """A fault of the plan; by default one that fires at the end of step 5."""
    return PlannedFault(id, kind, ranks, trigger or {"step": 5, "phase": "step.end"}, {}, None, 1)
