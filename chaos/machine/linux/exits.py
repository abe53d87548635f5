"""The kernel's reports of how any user's processes end: the process connector (drivers/connector/cn_proc.c).

The kernel reports every end with its wait status, whichever process collects it, on every kernel version; it needs root
(CAP_NET_ADMIN) outside all containers. Nothing is sent to any process.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.machine.linux.children import ExitStatus, from_wait_status
from chaos.machine.linux.procfs import PROC

_NETLINK_CONNECTOR = 11
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 8 << 20
_GROUP = 1  # CN_IDX_PROC
_DONE = 3  # NLMSG_DONE
_LISTEN, _IGNORE = 1, 2  # PROC_CN_MCAST_LISTEN, PROC_CN_MCAST_IGNORE
_EXIT = 0x80000000  # PROC_EVENT_EXIT
_INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO: events name PIDs as they are there
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr
_MESSAGE = struct.Struct("=IIIIHH")  # struct cn_msg
_EVENT = struct.Struct("=IIQII")  # struct proc_event up to the PID and the process of the thread that ends
_STATUS = struct.Struct("=I")


class ExitListener:
    """Hears of every process that ends from now on. ``close`` it soon: on a busy host there are many."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        """Start to listen. Raises OSError where this user may not, or the kernel has no process connector."""
        if str((PROC / "self" / "ns" / "pid").readlink()) != _INITIAL_PID_NAMESPACE:
            raise PermissionError("the process connector names PIDs of another namespace than this one")
        self._clock = clock
        self._ends: dict[int, list[tuple[int, int]]] = {}
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _NETLINK_CONNECTOR)
        try:
            with suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
            self._socket.bind((0, _GROUP))
            self._ask(_LISTEN)
            self._socket.setblocking(False)
        except BaseException:
            self._socket.close()
            raise

    def now(self) -> int:
        """Return the time on the clock of the kernel's reports, in nanoseconds (CLOCK_MONOTONIC)."""
        return self._clock.mono()

    def status(self, pid: int, since: int) -> ExitStatus | None:
        """Return how the process ended that had this PID at the time ``since`` (see :meth:`now`).

        None if no report came. Of several ends of this PID after that time the first counts: later ones are of
        processes that got the PID again.
        """
        self._hear()
        ends = [status for time, status in self._ends.get(pid, ()) if time >= since]
        return from_wait_status(ends[0]) if ends else None

    def close(self) -> None:
        """Stop listening."""
        with suppress(OSError):
            self._ask(_IGNORE)
        self._socket.close()

    def __enter__(self) -> ExitListener:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _hear(self) -> None:
        while True:
            try:
                data, sender = self._socket.recvfrom(1 << 16)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    return
                continue  # more has happened than fits; lost reports stay unknown
            if sender[0] == 0:  # the kernel itself
                self._take(data)

    def _take(self, data: bytes) -> None:
        start = _HEADER.size + _MESSAGE.size
        if len(data) < start + _EVENT.size + _STATUS.size:
            return
        what, _, time, thread, process = _EVENT.unpack_from(data, start)
        if what == _EXIT and thread == process:
            status = int(_STATUS.unpack_from(data, start + _EVENT.size)[0])
            self._ends.setdefault(process, []).append((time, status))

    def _ask(self, what: int) -> None:
        order = _STATUS.pack(what)
        message = _MESSAGE.pack(_GROUP, _GROUP, 0, 0, len(order), 0) + order
        header = _HEADER.pack(_HEADER.size + len(message), _DONE, 0, 0, 0)
        self._socket.send(header + message)


def listen(open_listener: Callable[[], ExitListener] = ExitListener) -> ExitListener | None:
    """Return a listener, or None where there can be none."""
    try:
        return open_listener()
    except OSError:
        return None
