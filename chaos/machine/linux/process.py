"""Processes of this host, identified for good: a PID may be reused, so it is never enough to signal a process."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chaos.base.clock import Clock, boot_id
from chaos.machine.linux.pidfd import open_pidfd, poll_ended, send_through
from chaos.machine.linux.procfs import PROC, read_stat

State = Literal["alive", "stopped", "zombie", "gone"]


def has_ended(state: State) -> bool:
    """Return whether a process in this state runs no more. A zombie's exit status waits for its parent."""
    return state in ("gone", "zombie")


class NoSuchProcess(LookupError):
    """The process has ended."""


class WrongProcess(LookupError):
    """The PID belongs to another process by now. Nothing was sent."""


class RefusedProcess(ValueError):
    """The process must never be signalled: init, this process, or one of its ancestors."""


class ElsewhereProcess(ValueError):
    """The process is on a node: only that node's remote helper can look at it, or signal it."""


@dataclass(frozen=True, order=True)
class ProcessIdentity:
    """One process of one boot: PID, start time in clock ticks since boot, boot id.

    ``node`` is set for a process on a node that a remote helper acts on: its PID means nothing here, and a local
    look-up or signal raises ElsewhereProcess.
    """

    pid: int
    start_time: int
    boot: str
    node: int | None = None

    def __str__(self) -> str:
        where = "" if self.node is None else f" of node {self.node}"
        return f"process {self.pid}{where} (started at tick {self.start_time})"


def identify(pid: int, proc_root: Path = PROC) -> ProcessIdentity:
    """Return the present process of ``pid``. A zombie can be identified too. Raises NoSuchProcess."""
    stat = read_stat(pid, proc_root)
    if stat is None:
        raise NoSuchProcess(f"there is no process {pid}")
    return ProcessIdentity(pid, stat.start_time, boot_id())


def state(identity: ProcessIdentity, proc_root: Path = PROC) -> State:
    """Return whether that very process runs, is stopped by a signal, has ended unreaped (zombie), or is gone.

    Raises ElsewhereProcess for one of a node.
    """
    _refuse_elsewhere(identity)
    stat = read_stat(identity.pid, proc_root)
    if stat is None or stat.start_time != identity.start_time or identity.boot != boot_id():
        return "gone"
    if stat.ended:
        return "zombie"
    return "stopped" if stat.state in "Tt" else "alive"


def alive(identity: ProcessIdentity) -> bool:
    """Return whether that very process still runs or is stopped. A zombie is not alive."""
    return state(identity) in ("alive", "stopped")


def send_signal(identity: ProcessIdentity, signum: int) -> None:
    """Send ``signum`` to that very process and to no other.

    A process descriptor is opened before the start time is compared: if it is the right one then, the descriptor cannot
    come to mean another. Raises NoSuchProcess, WrongProcess, RefusedProcess, ElsewhereProcess, PermissionError.
    """
    _refuse_elsewhere(identity)
    refuse(identity.pid)
    descriptor = open_process(identity)
    try:
        send_through(descriptor, signum)
    except ProcessLookupError as error:
        raise NoSuchProcess(f"{identity} has ended") from error
    finally:
        os.close(descriptor)


def wait_ended(identities: Iterable[ProcessIdentity], seconds: float, clock: Clock) -> list[ProcessIdentity]:
    """Wait until all of them have ended (a zombie has), at most ``seconds``.

    Returns the processes that have not ended.
    """
    deadline = clock.mono() + int(seconds * 1e9)
    with ExitStack() as stack:
        waiting: dict[int, ProcessIdentity] = {}
        for identity in identities:
            try:
                descriptor = open_process(identity)
            except LookupError:
                continue
            stack.callback(os.close, descriptor)
            waiting[descriptor] = identity
        while waiting:
            remaining = (deadline - clock.mono()) / 1e9
            for descriptor in poll_ended(list(waiting), remaining):
                del waiting[descriptor]
            if remaining <= 0:
                break
        return list(waiting.values())


def ancestors(pid: int, proc_root: Path = PROC) -> set[int]:
    """Return the PIDs of all ancestors of ``pid``."""
    pids: set[int] = set()
    while (stat := read_stat(pid, proc_root)) is not None and stat.ppid > 0 and stat.ppid not in pids:
        pid = stat.ppid
        pids.add(pid)
    return pids


def refuse(pid: int) -> None:
    """Raise RefusedProcess for a PID that must never be signalled."""
    if pid <= 1:
        raise RefusedProcess(f"PID {pid} is never signalled: it means init, a group, or every process")
    if pid == os.getpid() or pid in ancestors(os.getpid()):
        raise RefusedProcess(f"process {pid} is this process or one that it descends from")


def open_process(identity: ProcessIdentity) -> int:
    """Return a close-on-exec descriptor that is certain to be of that process.

    Raises NoSuchProcess and WrongProcess.
    """
    _refuse_elsewhere(identity)
    if identity.pid <= 0:
        raise NoSuchProcess(f"{identity.pid} is no PID")
    if identity.boot != boot_id():
        raise NoSuchProcess(f"{identity} belonged to an earlier boot of this host, or to another host")
    try:
        descriptor = open_pidfd(identity.pid)
    except ProcessLookupError as error:
        raise NoSuchProcess(f"{identity} has ended") from error
    try:
        stat = read_stat(identity.pid)
        if stat is None:
            raise NoSuchProcess(f"{identity} has ended")
        if stat.start_time != identity.start_time:
            raise WrongProcess(f"{identity} has ended: its PID belongs to a process started at tick {stat.start_time}")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _refuse_elsewhere(identity: ProcessIdentity) -> None:
    if identity.node is not None:
        raise ElsewhereProcess(
            f"{identity} is not a process of this host: only the remote helper on its node can reach it"
        )
