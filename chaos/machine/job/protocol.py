"""The protocol of a platform: where a job lives, and which actions are possible there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from chaos.machine.job.ending import Ended
from chaos.machine.job.processes import FoundProcess
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import ProcessIdentity, State
from chaos.machine.linux.procfs import Signals


class PlatformError(RuntimeError):
    """The platform could not carry out the request."""


class HelperLost(PlatformError):
    """The helper on a node has ended, or does not answer: nothing more is known about that node through it."""


@dataclass(frozen=True)
class LaunchSpec:
    """One launch of a job.

    ``run`` is the run's identity: the value of CHAOS_RUN. ``environment`` holds the run's variables, which override the
    environment of the process that starts the launcher on its node: the harness itself, or a remote helper in a
    container or on another host, which keeps its own. ``before`` are lists of directories (PATH, PYTHONPATH) that
    precede the node's own lists. CHAOS_RUN and CHAOS_ATTEMPT are added. ``log`` receives the launcher's output.
    ``cores`` pins the job; None leaves it free. ``collected_exit`` returns how a process ended whose exit status
    another process has collected.
    """

    run: str
    attempt: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path
    log: Path
    cores: tuple[int, ...] | None = None
    collected_exit: Callable[[ProcessIdentity], ExitStatus | None] | None = None
    before: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """The part of a job that one launcher starts: the part of node ``node`` of ``nodes``.

    ``ranks`` are the ranks of that node, in order, of ``size`` in all. ``address`` is the node's own on the job's
    network, ``master`` that of node 0. ``meeting`` is a directory that the ranks of all nodes see at this path.
    """

    node: int
    nodes: int
    ranks: tuple[int, ...]
    size: int
    address: str
    master: str
    meeting: Path


class Job(Protocol):
    """A launched job. It owns every process that carries its run's identity and attempt."""

    @property
    def launcher(self) -> ProcessIdentity:
        """The process that was started."""

    def processes(self) -> list[FoundProcess]:
        """Return the job's living processes, now. A process found once is remembered as the job's own."""

    def state(self, identity: ProcessIdentity) -> State:
        """Return whether that process runs, is stopped, is a zombie, or is gone."""

    def exit_status(self, identity: ProcessIdentity) -> ExitStatus | None:
        """Return how a process of the job ended; None while it runs. The first answer that is not None stays."""

    def signal(self, identity: ProcessIdentity, signum: int) -> None:
        """Send a signal to a process of the job. Raises PlatformError for any other process."""

    def stop(self, grace_seconds: float) -> Ended:
        """End all processes of the job with SIGTERM, and the rest with SIGKILL after ``grace_seconds``."""


@runtime_checkable
class SeveralLaunchers(Protocol):
    """A job with a launcher on each of several nodes."""

    @property
    def launchers(self) -> tuple[ProcessIdentity, ...]:
        """The launchers, in order of nodes."""


@runtime_checkable
class TellsSignals(Protocol):
    """A job whose processes only its platform can inspect."""

    def signals(self, identity: ProcessIdentity) -> Signals | None:
        """Return a process's handling of signals and the signals that it has not taken yet.

        None where they cannot be read.
        """


def launchers_of(job: Job) -> tuple[ProcessIdentity, ...]:
    """Return the launcher processes: one, or one for each node."""
    return job.launchers if isinstance(job, SeveralLaunchers) else (job.launcher,)


class Platform(Protocol):
    """A place where jobs live."""

    def start(self, spec: LaunchSpec) -> Job:
        """Start the job. Raises PlatformError, with nothing left running, if it cannot be started."""
