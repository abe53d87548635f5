"""The logs of an attached job, by the files that its processes have open: each fact once, by its rank.

A rank of MindFormers writes each line to its output and to ``log/rank_R/info.log``. Ranks that were started without
msrun may share one output file: a line there belongs to a rank only where it names the rank or its process.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.running.directories import FileKey
from chaos.machine.running.outputs import Output, outputs_of, teed_outputs_of
from chaos.machine.running.running import JobProcess
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader
from chaos.observe.logs.tail import LogTail
from chaos.observe.logs.ttp.log import CHATTER

_OF_LAUNCHER = ("msrun.", "torchrun.", "taskd.", "cluster.")
"""Kinds of events read from a launcher's own output: msrun and ``torchrun --tee`` repeat in it what their ranks log."""

_REMEMBERED = 2000
"""Events of a process remembered to recognise them in another of its files: more than one file is ahead of another
by."""


@dataclass(frozen=True)
class OfLog:
    """An event of a log, and its process: None where several ranks write the log and the line names none."""

    event: LogEvent
    process: JobProcess | None


@dataclass
class _Followed:
    """A log and its writers: the last process of each role and rank."""

    tail: LogTail
    writers: dict[tuple[str, int | None], JobProcess] = field(default_factory=dict)

    def writer(self, event: LogEvent) -> JobProcess | None:
        """Return the process that wrote a line, or the launcher for a line of its kind; None for one of several."""
        writers = list(self.writers.values())
        by_pid = next((process for process in writers if process.pid == event.pid), None)
        launcher = next((process for process in writers if process.role == "launcher"), None)
        if by_pid is None and launcher is not None and event.kind.startswith(_OF_LAUNCHER):
            return launcher
        of_ranks = [process for process in writers if process.role == "rank"]
        candidates = of_ranks or writers
        return by_pid or (candidates[0] if len(candidates) == 1 else None)

    def takes(self, event: LogEvent) -> bool:
        """Return whether an event is the job's, and is first logged here and not only repeated."""
        if event.kind == CHATTER:
            return False
        only_launcher = all(process.role == "launcher" for process in self.writers.values())
        return not only_launcher or event.kind.startswith(_OF_LAUNCHER)


class _Once:
    """Passes on the events of one process that stand in several of its files, once for each time that they happened."""

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[object, ...], Counter[FileKey]] = OrderedDict()

    def new(self, event: LogEvent, file: FileKey) -> bool:
        """Return whether this file has the event more often than any other file had it."""
        key = (event.kind, event.step, event.rank, event.wall_ns, repr(event.fields))
        counts = self._counts.setdefault(key, Counter())
        most = max(counts.values(), default=0)
        counts[file] += 1
        if len(self._counts) > _REMEMBERED:
            self._counts.popitem(last=False)
        return counts[file] > most


class WatchedLogs:
    """Follows every log that processes of a job have open."""

    def __init__(self, readers: Sequence[LogReader]) -> None:
        self._readers = readers
        self._followed: dict[FileKey, _Followed] = {}
        self._once: dict[ProcessIdentity, _Once] = {}
        self._found_teed: dict[ProcessIdentity, list[Output]] = {}

    def follow(self, processes: Sequence[JobProcess]) -> None:
        """Open the logs that are not followed yet, and note the writers of each."""
        for process in processes:
            for output in (*outputs_of(process.pid), *self._teed(process)):
                followed = self._followed.get(output.key)
                if followed is None:
                    try:
                        followed = _Followed(LogTail(output.open(), self._readers, name=output.path))
                    except OSError:
                        continue
                    self._followed[output.key] = followed
                followed.writers[process.role, process.rank] = process

    def read(self) -> Iterator[OfLog]:
        """Yield the events added since the last call."""
        for key, followed in self._followed.items():
            for event in followed.tail.new_events():
                if not followed.takes(event):
                    continue
                process = followed.writer(event)
                if process is None or process.role != "rank" or self._of_process(process).new(event, key):
                    yield OfLog(event, process)

    def unknown(self) -> dict[str, int]:
        """Return the number of lines that no reader knows, for each log that has any."""
        return {
            followed.tail.name: followed.tail.unknown for followed in self._followed.values() if followed.tail.unknown
        }

    def _teed(self, process: JobProcess) -> list[Output]:
        """Return the outputs that a ``tee`` writes for a process: sought until found: the shell starts both at once."""
        if process.identity not in self._found_teed:
            outputs = teed_outputs_of(process.pid)
            if not outputs:
                return []
            self._found_teed[process.identity] = outputs
        return self._found_teed[process.identity]

    def _of_process(self, process: JobProcess) -> _Once:
        """Return the memory of a process: the next one of its rank trains the same steps again."""
        return self._once.setdefault(process.identity, _Once())

    def close(self) -> None:
        """Close the files."""
        for followed in self._followed.values():
            followed.tail.close()
