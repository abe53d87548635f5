"""Following a job that runs already: who is in it, what its logs say, which checkpoints appear. Nothing is changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.history.clock import SYSTEM_CLOCK, Clock
from chaos.jobs.adopt import named_job
from chaos.observe.layout import find_checkpoints
from chaos.observe.log_event import LogEvent
from chaos.observe.reader import LogReader
from chaos.observe.tail import LogTail
from chaos.platforms.adopted import AdoptedJob
from chaos.platforms.children import collect
from chaos.platforms.directories import FileKey, key_of
from chaos.platforms.outputs import outputs_of
from chaos.platforms.process import ProcessIdentity, state
from chaos.platforms.running import JobProcess, RunningJob, Survey, survey

_OF_LAUNCHER = ("msrun.", "taskd.", "cluster.")
"""What is taken from a launcher's own output: msrun repeats in it what its ranks log."""

_SCAN_SECONDS = 5.0
MAX_FILES = 20_000
"""Files below the directory that is searched for checkpoints; with more it would take too long, again and again."""


@dataclass(frozen=True)
class Happened:
    """One thing that was seen. ``wall_ns`` is when: as the log says, else when it was noticed.

    ``before``: it had happened before the watching began.
    """

    event: str
    wall_ns: int
    rank: int | None = None
    pid: int | None = None
    data: dict[str, Any] = field(default_factory=dict)
    before: bool = False


@dataclass
class RankView:
    """A rank as it is now. ``step`` and ``loss`` are as its log prints them."""

    process: JobProcess
    state: str = "running"
    step: str = ""
    loss: str = ""
    starts: int = 1


class Watch:
    """One job, looked at again and again. ``ended`` is True once no rank of it is left."""

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
        """Raises JobError unless ``name`` is one job. ``checkpoints`` is searched for them, by default the directory
        that was named, or that the first rank works in."""
        self.ranks: dict[int, RankView] = {}
        self.ended = False
        self._look = look
        self._clock = clock
        self._readers = readers
        self._key: FileKey | None = None if name.isdecimal() else key_of(here / name)
        self._held: dict[ProcessIdentity, AdoptedJob | None] = {}
        self._known: set[ProcessIdentity] = set()
        self._tails: dict[FileKey, tuple[LogTail, JobProcess]] = {}
        self._first = True
        self.job = named_job(look(), name, here=here)
        self._root = checkpoints or (self._place_of(self.job) if self._key is None else here / name)
        self._saved: AbstractSet[Path] | None = None
        self._scan_at = 0

    def look(self) -> list[Happened]:
        """Everything that has happened since the last look."""
        happened: list[Happened] = []
        job = self.job if self._first else self._job_of(self._look())
        processes = job.processes if job is not None else ()
        happened += self._take(processes)
        self._follow(processes)
        happened += self._read()
        happened += self._ended({process.identity for process in processes})
        happened += self._checkpoints()
        if not any(view.state in ("running", "stopped") for view in self.ranks.values()):
            happened += self._read()  # what was written last
            self.ended = True
            happened.append(self._now("job.end"))
        self._first = False
        return happened

    def close(self) -> None:
        """Let go of the job's processes and logs."""
        for held in filter(None, self._held.values()):
            held.close()
        for tail, _ in self._tails.values():
            tail.close()

    def _job_of(self, found: Survey) -> RunningJob | None:
        """The same launch, or the next one in the directory that was named."""
        for job in found.jobs:
            if any(process.identity in self._known for process in job.processes):
                return job
        if self._key is not None:
            for job in found.jobs:
                if any(self._key in process.directories.keys for process in job.processes):
                    return job
        return None

    def _take(self, processes: Sequence[JobProcess]) -> Iterator[Happened]:
        """New processes, and ranks that are stopped or go on."""
        for process in processes:
            new = process.identity not in self._known
            self._known.add(process.identity)
            if new and process.rank is None:
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
        """Keep a descriptor of the process, by which its exit status is known for longer; False when it has ended.

        Where there can be none (Linux before 5.3, no right to signal it) it is watched without.
        """
        try:
            self._held[process.identity] = AdoptedJob([process.identity])
        except LookupError:
            return False
        except (ValueError, OSError):
            self._held[process.identity] = None
        return True

    def _ended(self, alive: set[ProcessIdentity]) -> Iterator[Happened]:
        for identity in [one for one in self._held if one not in alive]:
            if state(identity) in ("alive", "stopped"):
                continue
            held = self._held[identity]
            status = collect(identity) if held is None else held.exit_status(identity)
            if status is None:
                continue
            told_by = "" if held is None else held.told_by[identity]
            if held is not None:
                held.close()
            del self._held[identity]
            process = next((view.process for view in self.ranks.values() if view.process.identity == identity), None)
            if process is None or process.rank is None:  # its rank has been started again
                yield Happened("rank.exit", self._clock.wall(), None, identity.pid, {"how": str(status)})
                continue
            self.ranks[process.rank].state = f"ended, {status}"
            yield self._now("rank.exit", process, signal=status.signal, code=status.code, told_by=told_by)

    def _follow(self, processes: Sequence[JobProcess]) -> None:
        """Open the logs that are not followed yet."""
        for process in processes:
            for output in outputs_of(process.pid):
                if output.key in self._tails:
                    continue
                try:
                    tail = LogTail(output.open(), self._readers, file=output.path)
                except OSError:
                    continue
                self._tails[output.key] = (tail, process)

    def _read(self) -> Iterator[Happened]:
        for tail, process in self._tails.values():
            for event in tail.new_events():
                if process.role == "launcher" and not event.kind.startswith(_OF_LAUNCHER):
                    continue
                rank = process.rank if event.rank is None else event.rank
                self._note(process.rank, event)
                wall = self._clock.wall() if event.wall_ns is None else event.wall_ns
                told = {"kind": event.kind, "step": event.step, "fields": event.fields, "file": event.file}
                yield Happened("log", wall, rank, event.pid or process.pid, told, self._first)

    def _note(self, rank: int | None, event: LogEvent) -> None:
        """Step and loss of the rank whose log this is."""
        view = self.ranks.get(rank) if rank is not None else None
        if view is None or event.kind not in ("train.step", "train.loss"):
            return
        view.step = str(event.step) if event.step is not None else _in_epoch(event)
        view.loss = str(event.fields.get("loss_text") or "")

    def _checkpoints(self) -> Iterator[Happened]:
        now = self._clock.mono()
        if self._root is None or now < self._scan_at:
            return
        if _too_many(self._root):
            yield self._now("checkpoints.not_searched", directory=str(self._root), limit=MAX_FILES)
            self._root = None
            return
        seen = {one.path: one for one in find_checkpoints(self._root) if not one.temporary}
        known = seen.keys() if self._saved is None else self._saved
        self._saved = known | seen.keys()
        self._scan_at = now + int(_SCAN_SECONDS * 1e9)
        for path in sorted(seen.keys() - known):
            one = seen[path]
            step = one.directory_step if one.directory_step is not None else one.step_in_epoch
            told = {"path": str(path), "kind": one.kind, "epoch": one.epoch, "step": step}
            yield Happened("checkpoint", self._clock.wall(), one.rank, None, told)

    @staticmethod
    def _place_of(job: RunningJob) -> Path | None:
        process = (job.ranks or job.processes)[0]
        cwd = process.directories.cwd
        if cwd is None:
            return None
        return Path(f"/proc/{process.pid}/root{cwd}") if process.container is not None else Path(cwd)

    def _now(self, event: str, process: JobProcess | None = None, **data: Any) -> Happened:
        if process is None:
            return Happened(event, self._clock.wall(), None, None, data)
        told = {"start_time": process.identity.start_time, **data}
        return Happened(event, self._clock.wall(), process.rank, process.pid, told)


def _in_epoch(event: LogEvent) -> str:
    return f"{event.fields.get('epoch', '')}:{event.fields.get('step_in_epoch', '')}"


def _too_many(root: Path) -> bool:
    count = 0
    for _, directories, files in os.walk(root):
        count += len(directories) + len(files)
        if count > MAX_FILES:
            return True
    return False
