"""Ports, cores and devices of this host, never given to two jobs at a time.

A lease is a lock file held with flock, and a claim that harnesses of other users see (``host_claims``). The kernel
releases both when their holder ends, however it ends, so there is nothing to clean up. All harnesses of one user share
the same directory, pytest-xdist's workers included. Harnesses of earlier versions know the files only.

The job of a killed harness lives on until it is healed, and may start to listen at its ports only then. So a file
beside the port's lock names the run that has it, and no other run gets the port while processes of that run live. It is
a separate file because harnesses of earlier versions empty the file that they lock.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import socket
import stat
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar

from chaos.base.file_lock import FileLock
from chaos.base.plain_files import read_plain
from chaos.machine.host_claims import Claims
from chaos.machine.job.processes import runs_alive
from chaos.machine.lease_holder import Holder, in_words, read_holder, this_holder, write_holder
from chaos.machine.lease_waiters import Waiter, Waiters

T = TypeVar("T")

PORTS = range(20000, 30000)
"""Below the range from which Linux takes local ports for outgoing connections by default."""

_LONGEST_NAME = 4096
_LACKS_FLOCK = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
_NO_FLOCK = "this file system has no flock; leases need one that has"


class LeaseError(RuntimeError):
    """A lease cannot be had on this host. Waiting will not help."""


class Wait(Protocol):
    """Waits under a named deadline until ``condition`` returns a value, and returns that value."""

    def __call__(self, name: str, condition: Callable[[], T | None], /) -> T: ...


class Held:
    """One held number: the lock among this user's harnesses, and the claim among all harnesses of this host."""

    def __init__(self, lock: FileLock, claim: socket.socket | None) -> None:
        self._lock = lock
        self._claim = claim

    def release(self) -> None:
        """Release both: the claim first, because the next holder of the lock expects it to be free."""
        if self._claim is not None:
            self._claim.close()
        self._lock.release()


class Lease:
    """Numbers (ports, cores, devices) that nobody else holds until ``release``. A context manager.

    ``named`` are the files that name the run of these numbers; a name stays as long as processes of the run do.
    ``records`` show the holder to others (:mod:`chaos.machine.lease_holder`).
    """

    def __init__(
        self,
        numbers: Iterable[int],
        locks: list[Held],
        run: str = "",
        named: Iterable[Path] = (),
        records: Iterable[Path] = (),
    ) -> None:
        self.numbers = tuple(numbers)
        self._locks = locks
        self._run = run
        self._named = list(named)
        self._records = list(records)
        if self._records:
            self._holder = this_holder()
            self._record()

    def name_run(self, run: str) -> None:
        """Record the run that the lease is held for."""
        if self._records:
            self._holder = replace(self._holder, run=run)
            self._record()

    def _record(self) -> None:
        for path in self._records:
            write_holder(path, self._holder)

    def release(self) -> None:
        """Release the lease. A second call does nothing."""
        while self._records:
            with contextlib.suppress(OSError):  # a record that stays names a process that has ended
                self._records.pop().unlink(missing_ok=True)
        if self._named and self._run not in runs_alive():
            for path in self._named:
                with contextlib.suppress(OSError):  # a search for the run of a remaining name finds nothing
                    path.unlink(missing_ok=True)
        self._named.clear()
        while self._locks:
            self._locks.pop().release()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


def default_directory() -> Path:
    """Return the directory shared by all harnesses of this user.

    It is not under TMPDIR or XDG_RUNTIME_DIR: they differ between a login, a cron job and a service of the same user,
    and two harnesses with two directories would silently share cores.
    """
    return Path("/tmp") / f"chaos-{os.geteuid()}" / "leases"


class Leases:
    """Hands out leases from one directory."""

    def __init__(
        self, directory: Path | None = None, *, cores: Iterable[int] | None = None, claims: Claims | None = None
    ) -> None:
        """Open the directory. ``cores`` are the cores to give out; default: those that this process may run on.

        ``claims`` are shared with other users; default: those of the host, and none with a directory of its own.

        Raises LeaseError if the directory cannot be trusted: it must be a directory, not a link, of this user alone.
        """
        self._cores = tuple(sorted(os.sched_getaffinity(0) if cores is None else cores))
        self._directory = directory or default_directory()
        self._claims = Claims() if claims is None and directory is None else claims
        if directory is None:
            _make_private(self._directory.parent)
        _make_private(self._directory)

    def take_ports(self, count: int, *, run: str = "", ports: Iterable[int] = PORTS) -> Lease:
        """Lease ``count`` TCP ports that nothing on this host is bound to. Raises LeaseError if there are too few.

        Three kinds of port count as busy: a port with connections in TIME_WAIT, a port that the kernel may hand to an
        outgoing connection, and a port of a run with living processes. ``run`` is the CHAOS_RUN of the new user.
        """
        ephemeral = _ephemeral_ports()
        alive = functools.cache(runs_alive)
        taken: dict[int, Held] = {}
        named: list[Path] = []
        for port in ports:
            if len(taken) == count:
                break
            if port not in ephemeral and (lock := self._try_lock(f"port-{port}")) is not None:
                name = self._directory / f"port-{port}.run"
                if _is_free(port) and ((had := _holder(name)) == "" or had not in alive()):
                    if run:
                        with contextlib.suppress(OSError):  # a full disk
                            name.write_text(run, "utf-8")
                        named.append(name)
                    taken[port] = lock
                else:
                    lock.release()
        lease = Lease(taken, list(taken.values()), run, named)
        if len(taken) < count:
            lease.release()
            raise LeaseError(f"{count} free ports are needed and only {len(taken)} were found")
        return lease

    def take_cores(
        self,
        count: int,
        *,
        wait: Wait,
        up_to: int | None = None,
        blocked: Callable[[str], None] | None = None,
        limit: float | None = None,
    ) -> Lease:
        """Lease ``count`` cores, and up to ``up_to`` if that many are free at that moment.

        One job at a time is next, and nobody takes cores meanwhile, so jobs that need one core never keep overtaking a
        job that needs many. ``blocked`` is called once, with the reason, if the job has to wait; meanwhile others see
        that it does, and for how many seconds at most (``limit``). Raises LeaseError if this host does not have
        ``count`` cores, and what ``wait`` raises.
        """
        if not 1 <= count <= len(self._cores):
            raise LeaseError(f"{count} cores are needed; this process may use {len(self._cores)}")
        most = max(count, up_to or count)
        return self._take("core", self._cores, (count, most), wait, blocked, limit)

    def take_devices(
        self, devices: Iterable[int], *, wait: Wait, blocked: Callable[[str], None] | None = None
    ) -> Lease:
        """Lease exactly these accelerator devices. ``wait`` and ``blocked`` are as for cores."""
        numbers = tuple(dict.fromkeys(devices))
        return self._take("device", numbers, (len(numbers), len(numbers)), wait, blocked)

    def holders_of_cores(self) -> dict[int, Holder]:
        """Return the living process that holds each core, as it has recorded itself."""
        return {core: holder for core, holder in self._holders("core", self._cores).items() if holder is not None}

    def waiting_for_cores(self) -> list[Waiter]:
        """Return the living processes that wait for a core, the longest wait first."""
        return Waiters(self._directory, "core").listed()

    def _take(
        self,
        kind: str,
        numbers: tuple[int, ...],
        least_and_most: tuple[int, int],
        wait: Wait,
        blocked: Callable[[str], None] | None,
        limit: float | None = None,
    ) -> Lease:
        turn: list[Held] = []
        reasons: list[str] = []
        waiters = Waiters(self._directory, kind)

        def condition() -> Lease | None:
            if not turn and (lock := self._try_lock(f"{kind}-turn")) is not None:
                turn.append(lock)
            lease = self._try_some(kind, numbers, *least_and_most) if turn else None
            if lease is None and not reasons:
                reasons.append(in_words(kind, self._holders(kind, numbers), time.time()))
                waiters.add(limit)
                if blocked is not None:
                    blocked(reasons[0])
            return lease

        try:
            return wait(f"a free {kind}", condition)
        finally:
            for lock in turn:
                lock.release()
            if reasons:
                waiters.remove()

    def _try_some(self, kind: str, numbers: tuple[int, ...], least: int, most: int) -> Lease | None:
        taken: dict[int, Held] = {}
        for number in numbers:
            if len(taken) < most and (lock := self._try_lock(f"{kind}-{number}")) is not None:
                taken[number] = lock
        if len(taken) >= least:
            return Lease(taken, list(taken.values()), records=[self._record_of(kind, number) for number in taken])
        Lease(taken, list(taken.values())).release()
        return None

    def _record_of(self, kind: str, number: int) -> Path:
        return self._directory / f"{kind}-{number}.holder"

    def _holders(self, kind: str, numbers: tuple[int, ...]) -> dict[int, Holder | None]:
        """Return the recorded holder of each number; None for every number without a record."""
        records = {number: read_holder(self._record_of(kind, number)) for number in numbers}
        known: dict[int, Holder | None] = {number: holder for number, holder in records.items() if holder is not None}
        return known or dict.fromkeys(numbers)

    def _try_lock(self, name: str) -> Held | None:
        lock = self._try_own_lock(name)
        if lock is None:
            return None
        if self._claims is None:
            return Held(lock, None)
        try:
            claim = self._claims.claim(name)
        except OSError as error:
            lock.release()
            raise LeaseError(f"{name} cannot be claimed on this host: {error.strerror}") from error
        if claim is None:
            lock.release()
            return None
        return Held(lock, claim)

    def _try_own_lock(self, name: str) -> FileLock | None:
        path = self._directory / f"{name}.lock"
        try:
            return FileLock.try_acquire(path)
        except OSError as error:
            if error.errno in _LACKS_FLOCK:
                raise LeaseError(f"{self._directory}: {_NO_FLOCK}") from error
            raise LeaseError(f"{path}: cannot be locked: {error.strerror}") from error


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, exist_ok=True, parents=True)
        status = directory.lstat()
    except OSError as error:
        raise LeaseError(f"{directory}: cannot be used for leases: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise LeaseError(f"{directory}: is not a directory (a link is not trusted); remove it")
    if status.st_uid != os.geteuid():
        raise LeaseError(f"{directory}: belongs to user {status.st_uid}, not to this one; remove it")
    if status.st_mode & 0o077:
        raise LeaseError(f"{directory}: is open to others (mode {stat.S_IMODE(status.st_mode):o}); chmod it to 700")


def _holder(name: Path) -> str:
    """Return the run that has had a port last and did not release it, by its CHAOS_RUN.

    Empty where there is none.
    """
    with contextlib.suppress(OSError):
        return read_plain(name, _LONGEST_NAME).decode("utf-8", "replace")
    return ""


def _is_free(port: int) -> bool:
    # The wildcard address: it is busy if any address of the host is. Without SO_REUSEADDR, on purpose.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def _ephemeral_ports() -> range:
    try:
        low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text("ascii").split()
    except (OSError, ValueError):
        return range(32768, 61000)
    return range(int(low), int(high) + 1)
