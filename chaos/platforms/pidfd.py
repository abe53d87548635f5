"""Process file descriptors: a handle that stays with one process, whatever happens to its PID.

Python's own wrappers are used where the interpreter was built with them. Builds against old kernel headers lack them
on kernels that have the calls, so the system calls (the same numbers on every architecture) are made directly there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal

_PIDFD_SEND_SIGNAL = 424
_PIDFD_OPEN = 434


class PidfdUnsupported(OSError):
    """The kernel is older than Linux 5.3: a process cannot be signalled without the risk to hit another one."""


def open_pidfd(pid: int) -> int:
    """Open a close-on-exec descriptor for process ``pid``.

    Raises ProcessLookupError if there is none and PidfdUnsupported on kernels before 5.3.
    """
    try:
        return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else _system_call(_PIDFD_OPEN, pid, 0)
    except OSError as error:
        if error.errno == errno.ENOSYS:
            raise PidfdUnsupported(errno.ENOSYS, "signalling processes safely needs Linux 5.3 or later") from error
        if error.errno == errno.EINVAL:  # the id of a thread that leads no process
            raise ProcessLookupError(errno.ESRCH, f"{pid} is no process") from error
        raise


def send_through(descriptor: int, signum: int) -> None:
    """Send a signal to the process of an open descriptor. Raises ProcessLookupError if it has been reaped."""
    if hasattr(signal, "pidfd_send_signal"):
        signal.pidfd_send_signal(descriptor, signum)
    else:
        _system_call(_PIDFD_SEND_SIGNAL, descriptor, signum, None, 0)


def poll_ended(descriptors: list[int], seconds: float) -> set[int]:
    """Wait until at least one process has ended, at most ``seconds``. Returns the descriptors of those that have."""
    poller = select.poll()
    for descriptor in descriptors:
        poller.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poller.poll(max(0.0, seconds) * 1000)}


def _system_call(number: int, *arguments: int | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    given = [None if argument is None else ctypes.c_long(argument) for argument in arguments]
    result = int(libc.syscall(ctypes.c_long(number), *given))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
