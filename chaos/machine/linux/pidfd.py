"""Process file descriptors: a handle that stays with one process, whatever happens to its PID.

Python's own wrappers are used where the interpreter was built with them. Builds against old kernel headers lack them on
kernels that have the calls, so the system calls (the same numbers on every architecture) are made directly there.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import select
import signal
import struct

_PIDFD_SEND_SIGNAL = 424
_PIDFD_OPEN = 434

# struct pidfd_info in its first size: mask (64 bits), cgroup id (64 bits), eleven numbers, the wait status.
_PIDFD_INFO_BYTES = 64
_PIDFD_GET_INFO = 3 << 30 | _PIDFD_INFO_BYTES << 16 | 0xFF << 8 | 11  # _IOWR(0xFF, 11, struct pidfd_info)
_PIDFD_INFO_EXIT = 1 << 3


class PidfdUnsupported(OSError):
    """The kernel is older than Linux 5.3: a process cannot be signalled without the risk of hitting another one."""


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
    """Wait until at least one process has ended, at most ``seconds``. Returns the descriptors of ended processes."""
    poller = select.poll()
    for descriptor in descriptors:
        poller.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poller.poll(max(0.0, seconds) * 1000)}


def wait_status(descriptor: int) -> int | None:
    """Return the wait status of any user's process that has ended and been reaped, by the kernel's own record.

    None while it runs or is a zombie, and on kernels before 6.15, which keep no such record (PIDFD_INFO_EXIT in
    include/uapi/linux/pidfd.h).
    """
    info = bytearray(_PIDFD_INFO_BYTES)
    struct.pack_into("=Q", info, 0, _PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(descriptor, _PIDFD_GET_INFO, info)
    except OSError:  # ENOTTY before 6.13, ESRCH for a process that was reaped before 6.15
        return None
    if not int(struct.unpack_from("=Q", info, 0)[0]) & _PIDFD_INFO_EXIT:
        return None
    return int(struct.unpack_from("=i", info, 60)[0])


def _system_call(number: int, *arguments: int | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    words = [None if argument is None else ctypes.c_long(argument) for argument in arguments]
    result = int(libc.syscall(ctypes.c_long(number), *words))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
