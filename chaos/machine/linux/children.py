"""Exit statuses of processes that this process did not start itself.

``msrun --join=False`` ends as soon as it has spawned the ranks. A child subreaper inherits them then and can read the
true exit status of each from the kernel.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from chaos.machine.linux.process import ProcessIdentity, state
from chaos.machine.linux.procfs import PROC, Stat, read_stat

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37


@dataclass(frozen=True)
class ExitStatus:
    """How a process ended: by ``signal``, or with exit ``code``. Both None: it has ended and the way is unknown.

    ``told_by`` names the source where it is not the kernel's record of this very process: the process's node has ended,
    and the end of the node is all that is known of the process.
    """

    signal: int | None = None
    code: int | None = None
    told_by: str = field(default="", compare=False)

    @property
    def known(self) -> bool:
        return self.signal is not None or self.code is not None

    def __str__(self) -> str:
        if self.signal is not None:
            return f"signal {self.signal}"
        return "unknown" if self.code is None else f"exit code {self.code}"


@contextmanager
def subreaper() -> Iterator[None]:
    """Make this process inherit orphaned descendants, and restore the previous setting.

    An ignored SIGCHLD (some supervisors start their children so) makes the kernel throw exit statuses away, so it is
    set to its default meanwhile; that needs the main thread, and RuntimeError is raised elsewhere.
    """
    before = _get_subreaper()
    ignored = signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    if ignored:
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        except ValueError as error:
            raise RuntimeError("SIGCHLD is ignored, so exit statuses are lost; run from the main thread") from error
    _set_subreaper(True)
    try:
        yield
    finally:
        _set_subreaper(before)
        if ignored:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)


def end_with_parent(parent: int, signum: int) -> bool:
    """Let the kernel send this process ``signum`` when the thread that has started it ends, however it ends.

    Returns False when ``parent``, the PID of that thread's process, is not the parent any more: then it has ended
    already, and no signal will come.
    """
    _prctl(_PR_SET_PDEATHSIG, signum)
    return os.getppid() == parent


def collect(identity: ProcessIdentity) -> ExitStatus | None:
    """Return how that very process ended; None while it runs.

    A zombie child of this process is reaped. Never call it for a process that a ``subprocess.Popen`` object watches:
    the object could not learn the status any more. The status of a zombie that another process has to reap is read from
    /proc/PID/stat. Of a process that is gone nothing is known.
    """
    stat = read_stat(identity.pid)
    if stat is None or state(identity) == "gone":
        return ExitStatus()
    if not stat.ended:
        return None
    if stat.ppid != os.getpid():
        return status_of_zombie(stat)
    try:
        result = os.waitid(os.P_PID, identity.pid, os.WEXITED | os.WNOHANG)
    except ChildProcessError:
        return ExitStatus()
    if result is None:
        return None
    if result.si_code == os.CLD_EXITED:
        return ExitStatus(code=result.si_status)
    return ExitStatus(signal=result.si_status)


def orphans_of(session: int, since: int) -> Iterator[Stat]:
    """Yield living children of this process outside ``session`` that began at ``since`` or later.

    ``since`` is in clock ticks after boot. In a subreaper these children are orphans of its descendants, whatever their
    environment says, as long as every process that this process itself starts is in its own session, or is known to it
    otherwise.
    """
    me = os.getpid()
    for path in PROC.joinpath("self", "task").glob("*/children"):
        try:
            pids = path.read_text("ascii").split()
        except OSError:  # the thread has ended, and its children are another thread's
            continue
        for pid in pids:
            stat = read_stat(int(pid))
            if stat is None or stat.ended or stat.ppid != me or stat.session == session:
                continue
            if stat.start_time >= since:
                yield stat


def from_wait_status(status: int) -> ExitStatus:
    """Return the exit status for a wait status of the kernel's."""
    return from_return_code(os.waitstatus_to_exitcode(status))


def from_return_code(code: int) -> ExitStatus:
    """Return the exit status for a return code of Python's (minus the signal)."""
    return ExitStatus(signal=-code) if code < 0 else ExitStatus(code=code)


def status_of_zombie(stat: Stat) -> ExitStatus:
    """Return how a zombie of any user ended, if this user may know."""
    try:
        owner = (PROC / str(stat.pid)).stat().st_uid
    except OSError:
        return ExitStatus()
    # The kernel shows 0 to users without the right to see the status; that 0 must not pass for success.
    if owner != os.geteuid() and stat.exit_code == 0:
        return ExitStatus()
    return from_wait_status(stat.exit_code)


def _get_subreaper() -> bool:
    value = ctypes.c_int()
    _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(value))
    return bool(value.value)


def _set_subreaper(on: bool) -> None:
    _prctl(_PR_SET_CHILD_SUBREAPER, int(on))


def _prctl(option: int, argument: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if libc.prctl(ctypes.c_int(option), ctypes.c_ulong(argument), zero, zero, zero) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")
