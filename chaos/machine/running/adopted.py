"""A running job that chaos has not started: single processes of it can be signalled, and observed.

Every process is held by a descriptor from the moment of its choice on, so no other process is ever signalled, whatever
its PID comes to mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType

from chaos.machine.job.ending import Ended
from chaos.machine.job.processes import FoundProcess
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.children import ExitStatus, from_wait_status, status_of_zombie
from chaos.machine.linux.exits import listen
from chaos.machine.linux.pidfd import poll_ended, send_through, wait_status
from chaos.machine.linux.process import NoSuchProcess, ProcessIdentity, State, open_process, refuse, state
from chaos.machine.linux.procfs import read_stat

_ASK_SECONDS = 0.05
"""How long one question after an end waits for it: a zombie may be reaped at any moment, and its status be lost."""


class AdoptedJob:
    """The chosen processes of a running job. A context manager, which releases the descriptors at its end.

    ``status_sources`` names the source of the exit status for each process that has ended.
    """

    def __init__(self, processes: Iterable[ProcessIdentity], *, hearing: bool = False) -> None:
        """Hold the processes. With ``hearing`` the kernel also reports how processes end, where this user may listen.

        Raises NoSuchProcess, WrongProcess, RefusedProcess, PermissionError and PidfdUnsupported.
        """
        self._exits = listen() if hearing else None
        self._since = 0
        self._descriptors: dict[ProcessIdentity, int] = {}
        self._statuses: dict[ProcessIdentity, ExitStatus] = {}
        self.status_sources: dict[ProcessIdentity, str] = {}
        try:
            for identity in processes:
                refuse(identity.pid)
                self._descriptors[identity] = open_process(identity)
                _send(identity, self._descriptors[identity], 0)  # whether this user may
        except BaseException:
            self.close()
            raise
        self._since = 0 if self._exits is None else self._exits.now()

    @property
    def launcher(self) -> ProcessIdentity:
        """Raise PlatformError: nothing was launched."""
        raise PlatformError("this job was not started here, so it has no launcher of ours")

    def processes(self) -> list[FoundProcess]:
        """Return none: no process of it is this harness's own."""
        return []

    def state(self, identity: ProcessIdentity) -> State:
        """Return whether that process runs, is stopped, is a zombie, or is gone."""
        return state(identity)

    def exit_status(self, identity: ProcessIdentity) -> ExitStatus | None:
        """Return how one of the chosen processes ended; None while it runs. The first answer stays.

        The status is the kernel's: the one that the process's zombie shows, the one that the kernel keeps after it was
        reaped (Linux 6.15), or the one that the kernel reported to the listener. Where its parent was quicker and none
        of these is to be had, nothing is known.
        """
        descriptor = self._descriptor(identity)
        if identity not in self._statuses and poll_ended([descriptor], _ASK_SECONDS):
            self._statuses[identity], self.status_sources[identity] = self._ended(identity, descriptor)
        return self._statuses.get(identity)

    def signal(self, identity: ProcessIdentity, signum: int) -> None:
        """Send a signal to one of the chosen processes. Raises PlatformError for any other, and NoSuchProcess."""
        _send(identity, self._descriptor(identity), signum)

    def stop(self, grace_seconds: float) -> Ended:
        """Raise PlatformError: a job that was not started here is never ended."""
        raise PlatformError("this job was not started here, so it is not ended here")

    def close(self) -> None:
        """Release the processes."""
        if self._exits is not None:
            self._exits.close()
            self._exits = None
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def __enter__(self) -> AdoptedJob:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _ended(self, identity: ProcessIdentity, descriptor: int) -> tuple[ExitStatus, str]:
        stat = read_stat(identity.pid)
        if stat is not None and stat.start_time == identity.start_time and stat.ended:
            status = status_of_zombie(stat)
            if status.known:
                return status, "the kernel, by the status of its zombie"
        kept = wait_status(descriptor)
        if kept is not None:
            return from_wait_status(kept), "the kernel, by its process descriptor"
        heard = None if self._exits is None else self._exits.status(identity.pid, self._since)
        if heard is not None:
            return heard, "the kernel, by its process connector"
        return ExitStatus(), "nobody: its parent has collected the status, and this kernel keeps no other record of it"

    def _descriptor(self, identity: ProcessIdentity) -> int:
        if identity not in self._descriptors:
            raise PlatformError(f"{identity} was not chosen")
        return self._descriptors[identity]


def _send(identity: ProcessIdentity, descriptor: int, signum: int) -> None:
    try:
        send_through(descriptor, signum)
    except ProcessLookupError as error:
        raise NoSuchProcess(f"{identity} has ended") from error
