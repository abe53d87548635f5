"""Running network tools in the network namespace of a process, and in no other (network_namespaces(7))."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.commands import CommandError, Commands, Done, SystemCommands
from chaos.machine.linux.process import ProcessIdentity, state
from chaos.machine.linux.procfs import PROC

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class Namespace:
    """The network namespace of a living process, which is never this host's own.

    Calling it runs a tool there (``ip``, ``tc``). Raises PlatformError when the process has ended, CommandError.
    """

    holder: ProcessIdentity
    commands: Commands = field(default_factory=SystemCommands)

    def __call__(self, *argv: str) -> Done:
        """Run a tool in the namespace."""
        with self.entering() as prefix:
            return self.commands(*prefix, *argv)

    @contextmanager
    def entering(self) -> Iterator[tuple[str, ...]]:
        """Yield the words that run a command line in the namespace; they are valid inside this context only."""
        with self._opened() as descriptor:
            yield ("nsenter", f"--net={PROC}/{os.getpid()}/fd/{descriptor}")

    def do(self, *argv: str) -> str:
        """Run a tool that must succeed, and return its output. Raises PlatformError."""
        try:
            return self(*argv).checked()
        except CommandError as error:
            raise PlatformError(str(error)) from error

    def socket(self, family: int, kind: int, protocol: int = 0) -> socket.socket:
        """Return a socket in the namespace, which a thread started for this call alone enters to open it.

        Raises PlatformError, OSError.
        """
        opened: list[socket.socket | OSError | PlatformError] = []

        def open_there() -> None:
            try:
                with self._opened() as descriptor:
                    if _LIBC.setns(descriptor, _CLONE_NEWNET) != 0:
                        raise OSError(ctypes.get_errno(), f"setns: {os.strerror(ctypes.get_errno())}")
                opened.append(socket.socket(family, kind, protocol))
            except (OSError, PlatformError) as error:
                opened.append(error)

        there = threading.Thread(target=open_there, name="network-namespace")
        there.start()
        there.join()
        (result,) = opened
        if isinstance(result, (OSError, PlatformError)):
            raise result
        return result

    def is_there(self) -> bool:
        """Return whether the namespace's process lives."""
        return state(self.holder) in ("alive", "stopped")

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Yield a descriptor of the namespace.

        Its process still lives after it was opened, so it is no other process's of that PID.
        """
        gone = f"the network of the run has gone with {self.holder}"
        try:
            descriptor = os.open(PROC / str(self.holder.pid) / "ns" / "net", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise PlatformError(f"{gone}: {error.strerror}") from error
        try:
            if not self.is_there():
                raise PlatformError(gone)
            if os.fstat(descriptor).st_ino in (_inode("self"), _inode(1)):
                raise PlatformError(f"{self.holder} is in this host's own network, which is never touched")
            yield descriptor
        finally:
            os.close(descriptor)


def _inode(pid: int | str, proc_root: Path = PROC) -> int | None:
    try:
        return (proc_root / str(pid) / "ns" / "net").stat().st_ino
    except OSError:
        return None
