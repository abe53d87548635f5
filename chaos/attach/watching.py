"""Following an attached job: its processes, the events of its logs, its checkpoints. Nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.attach.choose import jobs_in, watchable_job, without_leftovers
from chaos.attach.event import JobEvent
from chaos.attach.watched_checkpoints import WatchedCheckpoints
from chaos.attach.watched_logs import WatchedLogs
from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.machine.linux.children import collect
from chaos.machine.linux.process import ProcessIdentity, state
from chaos.machine.running.adopted import AdoptedJob
from chaos.machine.running.directories import FileKey, key_of
from chaos.machine.running.running import JobProcess, RunningJob, Survey, survey
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader

GRACE_SECONDS = 30.0
"""Seconds without any rank after which a job without a launcher has ended: its owner may start it again within them."""


@dataclass
class StepView:
    """The last step in a log that several ranks write, and its loss, as the log prints them."""

    step: str = ""
    loss: str = ""


@dataclass
class RankView:
    """A rank as it is now. ``step`` and ``loss`` are as its log prints them."""

    process: JobProcess
    state: str = "running"
    step: str = ""
    loss: str = ""
    starts: int = 1


class Watch:
    """One job, polled again and again. ``ended`` is True once no rank of it is left and none can be expected.

    ``shared`` has the last step of each log that several ranks write, by its path, where lines name no rank.
    """

    def __init__(
        self,
        name: str,
        *,
        here: Path,
        readers: Sequence[LogReader],
        checkpoints: Path | None = None,
        clock: Clock = SYSTEM_CLOCK,
        look: Callable[[], Survey] = survey,
    ) -> None:
        """Find the job. Raises JobError unless ``name`` is exactly one job.

        ``checkpoints`` is the directory searched for them, by default the named directory and the ranks' working
        directories.
        """
        self.ranks: dict[int, RankView] = {}
        self.shared: dict[str, StepView] = {}
        self.ended = False
        self._look = look
        self._clock = clock
        self._logs = WatchedLogs(readers)
        self._key: FileKey | None = None if name.isdecimal() else key_of(here / name)
        self._held: dict[ProcessIdentity, AdoptedJob | None] = {}
        self._known: set[ProcessIdentity] = set()
        self._beside: list[JobProcess] = []
        self._gone_since: int | None = None
        self._reported_gone = False
        self._first = True
        self.job = watchable_job(look(), name, here=here)
        self._name = name
        self._checkpoints = WatchedCheckpoints(checkpoints, clock)
        if checkpoints is None and self._key is not None:
            self._checkpoints.search(here / name)

    def look(self) -> list[JobEvent]:
        """Return everything that has happened since the last look."""
        happened: list[JobEvent] = []
        job = self.job if self._first else self._job_of(self._look())
        processes = [process for process in job.processes if self._takes(process)] if job is not None else []
        if self._held:  # the last lines and the end of a process come before the next process of its rank
            happened += self._read()
            happened += self._ended({process.identity for process in processes})
        happened += self._take(processes)
        self._logs.follow(processes)
        happened += self._read()
        self._checkpoints.search_working_directories([process for process in processes if process.role == "rank"])
        happened += self._checkpoints.look()
        unnumbered = job is not None and any(map(_unnumbered, job.processes))
        if unnumbered or any(view.state in ("running", "stopped") for view in self.ranks.values()):
            self._gone_since, self._reported_gone = None, False
        else:
            happened += self._without_ranks()
        self._first = False
        return happened

    def close(self) -> None:
        """Close the job's process descriptors and logs."""
        for adopted_job in filter(None, self._held.values()):
            adopted_job.close()
        self._logs.close()

    def _job_of(self, current: Survey) -> RunningJob | None:
        """Return the same launch, or the next launch in the named directory."""
        for job in (*current.jobs, *current.forks):
            if any(process.identity in self._known for process in job.processes):
                return job
        if self._key is None:
            return None
        # Leftovers of the last launch are not a launch.
        return min(without_leftovers(jobs_in(self._key, current)), key=_least_clear, default=None)

    def _takes(self, process: JobProcess) -> bool:
        """Return whether it is certain what this process is; a process named by its PID is what it says."""
        if _unnumbered(process):
            return False
        return not process.doubt or process.identity in self._known or str(process.pid) == self._name

    def _take(self, processes: Sequence[JobProcess]) -> Iterator[JobEvent]:
        """Yield new processes, and ranks that are stopped or go on."""
        for process in processes:
            new = process.identity not in self._known
            self._known.add(process.identity)
            if new and process.rank is None:
                self._beside.append(process)
                yield self._now("launcher.found", process, role=process.role)
            if process.rank is None or (not new and process.identity not in self._held):
                continue
            if new:
                if not self._hold(process):
                    continue
                earlier = self.ranks.get(process.rank)
                view = RankView(process, starts=1 if earlier is None else earlier.starts + 1)
                self.ranks[process.rank] = view
                if earlier is None:
                    yield self._now("rank.found", process)
                else:
                    was = earlier.process.pid
                    yield self._now("rank.restarted", process, instead_of=was, starts=view.starts)
            view = self.ranks[process.rank]
            now = {"stopped": "stopped", "alive": "running"}.get(state(process.identity), view.state)
            if view.process.identity == process.identity and now != view.state:
                view.state = now
                yield self._now("rank.stopped" if now == "stopped" else "rank.continued", process)

    def _hold(self, process: JobProcess) -> bool:
        """Keep a descriptor of the process, which keeps its exit status available for longer; False when it has ended.

        Where there is no descriptor (Linux before 5.3, no right to signal the process) it is watched without one.
        """
        try:
            self._held[process.identity] = AdoptedJob([process.identity])
        except LookupError:
            return False
        except (ValueError, OSError):
            self._held[process.identity] = None
        return True

    def _ended(self, alive: set[ProcessIdentity]) -> Iterator[JobEvent]:
        for identity in [candidate for candidate in self._held if candidate not in alive]:
            if state(identity) in ("alive", "stopped"):
                continue
            adopted_job = self._held[identity]
            status = collect(identity) if adopted_job is None else adopted_job.exit_status(identity)
            if status is None:
                continue
            told_by = "" if adopted_job is None else adopted_job.status_sources[identity]
            if adopted_job is not None:
                adopted_job.close()
            del self._held[identity]
            process = next((view.process for view in self.ranks.values() if view.process.identity == identity), None)
            if process is None or process.rank is None:  # its rank has been started again
                yield JobEvent("rank.exit", self._clock.wall(), None, identity.pid, {"how": str(status)})
                continue
            self.ranks[process.rank].state = f"ended, {status}"
            yield self._now("rank.exit", process, signal=status.signal, code=status.code, told_by=told_by)

    def _read(self) -> Iterator[JobEvent]:
        for line in self._logs.read():
            event, process = line.event, line.process
            writer_rank, writer_pid = (None, None) if process is None else (process.rank, process.pid)
            self._note(event, process)
            rank = writer_rank if event.rank is None else event.rank
            wall = self._clock.wall() if event.wall_ns is None else event.wall_ns
            data = {"kind": event.kind, "step": event.step, "fields": event.fields, "file": event.file}
            yield JobEvent("log", wall, rank, event.pid or writer_pid, data, self._first)

    def _note(self, event: LogEvent, writer: JobProcess | None) -> None:
        """Note step and loss of the rank that wrote the log, or of the log where the line names none of its ranks."""
        if event.kind not in ("train.step", "train.loss"):
            return
        rank = event.rank if writer is None else writer.rank
        view: RankView | StepView | None = self.ranks.get(rank) if rank is not None else None
        if rank is None:
            view = self.shared.setdefault(event.file, StepView())
        if view is None:
            return
        view.step = str(event.step) if event.step is not None else _in_epoch(event)
        view.loss = str(event.fields.get("loss_text") or "")

    def _without_ranks(self) -> Iterator[JobEvent]:
        """Yield the events of a job without living ranks.

        A living launcher, or the job's owner, may start them all again.
        """
        beside = [process for process in self._beside if state(process.identity) in ("alive", "stopped")]
        launcher = next((process for process in beside if process.role == "launcher"), None)
        if launcher is not None:
            self._gone_since = None
        elif self._gone_since is None:
            self._gone_since = self._clock.mono()
        # A job named by a PID is recognised only by a process that it shares with its next launch.
        for_good = not beside and self._key is None
        if self._gone_since is not None:
            for_good = for_good or self._clock.mono() - self._gone_since >= GRACE_SECONDS * 1e9
        if for_good:
            yield from self._read()  # the last lines
            self.ended = True
            yield self._now("job.end", unknown_lines=self._logs.unknown())
        elif not self._reported_gone:
            self._reported_gone = True
            yield self._now("ranks.gone", launcher=None if launcher is None else launcher.pid, grace=GRACE_SECONDS)

    def _now(self, event: str, process: JobProcess | None = None, **data: Any) -> JobEvent:
        if process is None:
            return JobEvent(event, self._clock.wall(), None, None, data)
        fields = {"start_time": process.identity.start_time, **data}
        return JobEvent(event, self._clock.wall(), process.rank, process.pid, fields)


def _unnumbered(process: JobProcess) -> bool:
    """Return whether the process is a living rank whose log does not yet give its number."""
    return process.role == "rank" and process.rank is None


def _in_epoch(event: LogEvent) -> str:
    """Return the epoch and the step in it as the line has them, whatever a script counts."""
    step = event.fields.get("step_in_epoch", event.fields.get("printed_step"))
    return ":".join(str(part) for part in (event.fields.get("epoch"), step) if part is not None)


def _least_clear(job: RunningJob) -> tuple[bool, bool]:
    """Order two jobs in a directory: a job with a certain rank has come further."""
    return not job.ranks, job.doubtful
