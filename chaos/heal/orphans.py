"""Orphans of a job: processes without the run's identity, after the harness that knew the job was killed.

A process that a rank has started with an empty environment, and that outlives the rank, is a child of init by then. Two
signs of its origin are left: it writes its output into the logs or the job's directory of the run, where nobody else
writes, and it is in the session of a rank or launcher whose PID and start time the harness has recorded. A process with
both signs is ended. A process with the first sign alone is reported, for somebody to decide: a process that the run has
not recorded is never ended.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from chaos.base.clock import Clock, boot_id
from chaos.history.reader import read_history
from chaos.machine.job.processes import RUN_VARIABLE
from chaos.machine.linux.process import ProcessIdentity, RefusedProcess, ancestors, send_signal, wait_ended
from chaos.machine.linux.procfs import all_pids, command_line, environment, read_stat
from chaos.machine.running.outputs import standard_outputs_of

_PLACES = ("logs", "job")
_END_SECONDS = 10.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Writer:
    """A process without any run's identity that writes its output into ``path``."""

    identity: ProcessIdentity
    session: int
    path: str
    cmdline: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.identity}: {' '.join(self.cmdline)}"


def writers() -> list[Writer]:
    """Return all processes that may be orphans of some run, except this process and its ancestors."""
    excluded = {os.getpid(), *ancestors(os.getpid())}
    boot = boot_id()
    candidates = []
    for pid in all_pids():
        before = read_stat(pid)
        if before is None or before.ended or pid in excluded:
            continue
        variables = environment(pid)
        output = next(iter(standard_outputs_of(pid)), None)
        after = read_stat(pid)
        if output is None or variables is None or RUN_VARIABLE in variables:
            continue
        if after is not None and after.start_time == before.start_time:
            identity = ProcessIdentity(pid, after.start_time, boot)
            candidates.append(Writer(identity, after.session, output.path, command_line(pid)))
    return candidates


def into(run_dir: Path, candidates: Sequence[Writer]) -> list[Writer]:
    """Keep the processes that write into a run's own directories."""
    places = [run_dir / name for name in _PLACES]
    return [writer for writer in candidates if any(PurePath(writer.path).is_relative_to(place) for place in places)]


def end_orphans(run_dir: Path, clock: Clock, look: Callable[[], list[Writer]] = writers) -> tuple[list[str], list[str]]:
    """End the run's proven orphans. Returns, in words, what was ended, and what is left with the reason."""
    sessions = _sessions(run_dir)
    done: list[str] = []
    tried: dict[ProcessIdentity, str] = {}
    while orphans := [
        writer for writer in into(run_dir, look()) if sessions.hold(writer) and writer.identity not in tried
    ]:
        for writer in orphans:
            tried[writer.identity] = "still there after SIGKILL"
            try:
                send_signal(writer.identity, signal.SIGKILL)
            except LookupError:
                continue
            except (PermissionError, RefusedProcess) as error:
                tried[writer.identity] = f"was not ended: {error}"
                continue
            done.append(f"ended {writer}, which a process of the job has left")
        wait_ended([writer.identity for writer in orphans], _END_SECONDS, clock)
    left = []
    for writer in into(run_dir, look()):
        advice = f"if it is the job's, end it: kill {writer.identity.pid}"
        why = tried.get(writer.identity, f"it is in no session that was recorded, so it was not ended; {advice}")
        left.append(f"{writer} writes to {writer.path}: {why}")
    return done, left


@dataclass(frozen=True)
class _Sessions:
    """The sessions of a run's ranks and launchers: start times (ticks) by PID, and until when (ns) they were known."""

    boot: str
    leaders: frozenset[tuple[int, int]]
    until: int

    def hold(self, writer: Writer) -> bool:
        """Return whether the process is in one of the sessions, and began while the harness lived.

        The number of a session is not reused while a process is in it.
        """
        if writer.identity.boot != self.boot:
            return False
        began = writer.identity.start_time
        now = read_stat(writer.session)
        return any(
            pid == writer.session
            and start <= began
            and began * 1_000_000_000 // _TICKS <= self.until
            and (now is None or now.start_time == start)
            for pid, start in self.leaders
        )


def _sessions(run_dir: Path) -> _Sessions:
    history = read_history(run_dir / "history")
    harness_events = [event for event in history.events if event.writer == "harness"]
    opening = next((event for event in harness_events if event.event == "writer.start"), None)
    leaders = frozenset(
        (event.pid, start)
        for event in harness_events
        if event.event in ("rank.found", "launcher.found") and event.pid is not None
        if isinstance(start := event.data.get("start_time"), int)
    )
    return _Sessions(
        str(opening.data.get("boot")) if opening else "", leaders, harness_events[-1].mono if harness_events else 0
    )
