"""Jobs as processes of this host."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from chaos.agent.launcher.rank_variables import VARIABLE
from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.machine.job.ending import Ended, end_processes
from chaos.machine.job.launcher_environment import launcher_environment
from chaos.machine.job.processes import ATTEMPT_VARIABLE, NODE_VARIABLE, RUN_VARIABLE, FoundProcess, find_run_processes
from chaos.machine.job.protocol import LaunchSpec, PlatformError
from chaos.machine.linux.children import ExitStatus, collect, from_return_code, from_wait_status, orphans_of
from chaos.machine.linux.pidfd import open_pidfd, wait_status
from chaos.machine.linux.process import ProcessIdentity, State, identify, send_signal, state
from chaos.machine.linux.procfs import all_pids, command_line, environment, read_stat

_TELL_NANOSECONDS = 1_000_000_000
"""How long a process that has collected a rank's exit status may take to report it."""


class LocalPlatform:
    """Starts jobs on this host. Run inside ``subreaper()``; without it exit statuses of orphaned ranks stay unknown."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock

    def start(self, spec: LaunchSpec) -> LocalJob:
        """Start the launcher in a session of its own, with its output in ``spec.log`` and no input."""
        others = frozenset(_children())
        variables = launcher_environment(os.environ, spec.environment, spec.before)
        variables |= {RUN_VARIABLE: spec.run, ATTEMPT_VARIABLE: spec.attempt}
        try:
            with spec.log.open("ab") as log, _on_cores(spec.cores):
                process = subprocess.Popen(
                    spec.argv,
                    env=variables,
                    cwd=spec.cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    close_fds=True,
                )
        except (OSError, ValueError, IndexError) as error:
            raise PlatformError(f"the job's launcher {' '.join(spec.argv)!r} cannot be started: {error}") from error
        return LocalJob(spec, process, self._clock, others)


class LocalJob:
    """One launched job. Its methods may be called from several threads.

    ``others`` are this process's earlier children, by PID and start time: none of them belongs to the job.
    """

    def __init__(
        self, spec: LaunchSpec, launcher: subprocess.Popen[bytes], clock: Clock, others: frozenset[tuple[int, int]]
    ) -> None:
        self._others = others
        self._spec = spec
        self._popen = launcher
        self._clock = clock
        self._lock = threading.RLock()
        # Unreaped, so its PID cannot have passed to another process.
        self._launcher = identify(launcher.pid)
        self._sessions: dict[ProcessIdentity, int] = {self._launcher: launcher.pid}
        self._statuses: dict[ProcessIdentity, ExitStatus] = {}
        self._collected_elsewhere: dict[ProcessIdentity, int] = {}
        self._own_launcher = VARIABLE in spec.environment
        self._descriptors: dict[ProcessIdentity, int] = {}

    @property
    def launcher(self) -> ProcessIdentity:
        """The process that was started."""
        return self._launcher

    def processes(self) -> list[FoundProcess]:
        """Return the job's living processes, now.

        A process found once is remembered as the job's own.
        """
        with self._lock:
            self._adopt_orphans()
            unended = [identity for identity in self._sessions if identity not in self._statuses]
            processes = [
                process
                for process in find_run_processes(self._spec.run, known=unended)
                if process.attempt in (None, self._spec.attempt)
                and process.part in (None, self._spec.environment.get(NODE_VARIABLE))
            ]
            for process in processes:
                self._watch(process)
            return [
                replace(process, role="launcher")
                if process.identity == self._launcher and process.role == "other"
                else process
                for process in processes
            ]

    def _watch(self, process: FoundProcess) -> None:
        """Remember a process, and hold a descriptor of one that a launcher of its own may reap."""
        self._sessions[process.identity] = process.session
        watched = process.role in ("rank", "lighthouse") and self._own_launcher
        if not watched or process.identity in self._descriptors:
            return
        try:
            descriptor = open_pidfd(process.pid)
        except OSError:
            return
        if state(process.identity) == "gone":
            os.close(descriptor)  # it may be another process's by now
        else:
            self._descriptors[process.identity] = descriptor

    def state(self, identity: ProcessIdentity) -> State:
        """Return whether that process runs, is stopped, is a zombie, or is gone."""
        return state(identity)

    def exit_status(self, identity: ProcessIdentity) -> ExitStatus | None:
        """Return how a process of the job ended; None while it runs. The first answer that is not None stays.

        A process that is gone and was reaped by another (msrun reaps a rank that ends before msrun does) has the status
        reported by that other process (``LaunchSpec.collected_exit``), or an unknown status. Raises PlatformError for a
        process that was never found as the job's.
        """
        with self._lock:
            self._check_own(identity)
            if identity not in self._statuses and (status := self._collect(identity)) is not None:
                self._statuses[identity] = status
            return self._statuses.get(identity)

    def signal(self, identity: ProcessIdentity, signum: int) -> None:
        """Send a signal to a process of the job.

        Raises PlatformError for a process that was never found as the job's, and what ``send_signal`` raises.
        """
        with self._lock:
            self._check_own(identity)
        send_signal(identity, signum)

    def stop(self, grace_seconds: float) -> Ended:
        """End all processes of the job, note their exit statuses, and reap the children that this process inherited."""
        ended = end_processes(self.processes, grace_seconds=grace_seconds, clock=self._clock)
        with self._lock:
            for identity in list(self._sessions):
                self.exit_status(identity)
                if identity != self._launcher:
                    collect(identity)  # again: its status may have been read while it was another process's zombie
            self._reap_unseen()
            for descriptor in self._descriptors.values():
                os.close(descriptor)
            self._descriptors.clear()
        return ended

    def _adopt_orphans(self) -> None:
        """Record orphans of the job's ranks as the job's own, even if their environment shows nothing of the run.

        A parent may have ended before its child was seen, and the kernel hands the child to this process then. A
        process that is about to become another launcher still has this process's own command line. As the first process
        of a container this process is handed everybody's orphans, and adopts none.
        """
        if os.getpid() == 1:
            return
        own_command = command_line(os.getpid())
        for stat in orphans_of(os.getsid(0), self._launcher.start_time):
            identity = ProcessIdentity(stat.pid, stat.start_time, self._launcher.boot)
            if (stat.pid, stat.start_time) in self._others:
                continue  # it may have been started in the same clock tick as the launcher
            if identity in self._sessions or RUN_VARIABLE in (environment(stat.pid) or {}):
                continue  # of this run, or of another run: its environment says so
            if command_line(stat.pid) != own_command and state(identity) != "gone":
                self._sessions[identity] = stat.session

    def _check_own(self, identity: ProcessIdentity) -> None:
        if identity not in self._sessions:
            raise PlatformError(f"{identity} is not of the job of run {self._spec.run}, attempt {self._spec.attempt}")

    def _collect(self, identity: ProcessIdentity) -> ExitStatus | None:
        if identity == self._launcher:
            code = self._popen.poll()
            return None if code is None else from_return_code(code)
        status = collect(identity)
        if (
            status is not None
            and not status.known
            and (descriptor := self._descriptors.pop(identity, None)) is not None
        ):
            raw_status = wait_status(descriptor)
            os.close(descriptor)
            if raw_status is not None:
                return from_wait_status(raw_status)
        if status is None or status.known or self._spec.collected_exit is None:
            return status
        # The process that collected the status reports it a moment later.
        since = self._collected_elsewhere.setdefault(identity, self._clock.mono())
        collected_exit = self._spec.collected_exit(identity)
        if collected_exit is None and self._clock.mono() - since < _TELL_NANOSECONDS:
            return None
        return collected_exit or status

    def _reap_unseen(self) -> None:
        """Reap inherited zombies that ended before they were found: children of this process in a session of the job's.

        A process that leads its session is left alone, since another part of this process may have started it so.
        """
        sessions = set(self._sessions.values())
        for pid in all_pids():
            stat = read_stat(pid)
            if stat and stat.ended and stat.ppid == os.getpid() and stat.session in sessions and stat.session != pid:
                collect(ProcessIdentity(pid, stat.start_time, self._launcher.boot))


def _children() -> Iterator[tuple[int, int]]:
    """Yield the children of this process in other sessions, by PID and start time."""
    return ((stat.pid, stat.start_time) for stat in orphans_of(os.getsid(0), 0))


@contextmanager
def _on_cores(cores: tuple[int, ...] | None) -> Iterator[None]:
    """Pin the calling thread, so that its children are born pinned; other threads are not touched."""
    if cores is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
