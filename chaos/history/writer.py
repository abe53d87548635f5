"""Writing the history: one file per process, append-only, one write per line."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from chaos.base.clock import Clock, boot_id
from chaos.history.event import Event
from chaos.history.jsonl import UnreadableFile, decode, encode, read_lines

POD_WRITER = "kubernetes"
"""The writer of a cluster's facts about a job's pods, by the name in recorded runs."""

_OWN = frozenset({"seq", "mono", "wall", "event"})


class HistoryWriteError(RuntimeError):
    """An event could not be recorded. Without its record nothing may count as having happened."""


class HistoryWriter:
    """Appends events to one file. Safe to share between threads, not between processes.

    Every event is one ``os.write`` on a descriptor opened with O_APPEND. Nothing is buffered, so every event that
    ``record`` has returned survives a SIGKILL of this process.
    """

    def __init__(self, path: Path, *, writer: str, run: str, clock: Clock, resume: bool = False) -> None:
        """Create ``path`` and record ``writer.start``.

        With ``resume`` an existing file is continued after its last whole line and ``writer.resume`` is recorded; a
        torn last line is ended first, so that it stays separate. Raises HistoryWriteError if the file cannot be opened
        or, without ``resume``, exists already: one writer per process.
        """
        self._path = path
        self._writer = writer
        self._clock = clock
        self._lock = threading.Lock()
        last_seq, self._line, self._torn = _end_of(path) if resume else (-1, 0, False)
        self._seq = last_seq + 1
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            self._descriptor = os.open(path, flags if resume else flags | os.O_EXCL, 0o644)
        except FileExistsError as error:
            raise HistoryWriteError(f"{path}: exists; a history file has one writer") from error
        except OSError as error:
            raise HistoryWriteError(f"{path}: cannot be opened for appending: {error.strerror}") from error
        try:
            opening = "writer.resume" if self._seq else "writer.start"
            self.record(opening, writer=writer, run=run, host=os.uname().nodename, boot=boot_id())
        except BaseException:
            self.close()
            raise

    def record(
        self,
        event: str,
        /,
        *,
        attempt: str | None = None,
        rank: int | None = None,
        pid: int | None = None,
        **data: Any,
    ) -> Event:
        """Append one event and return it.

        Raises ValueError or TypeError if ``data`` is not JSON (NaN included) or uses a name of the frame, and
        HistoryWriteError if the line could not be written whole. The sequence number is used up only by a whole line.
        """
        if clash := _OWN & data.keys():
            raise ValueError(
                f"event {event}: {', '.join(sorted(clash))} belongs to the frame of an event, not to its data"
            )
        with self._lock:
            mono, wall = self._clock.mono(), self._clock.wall()
            frame = {"seq": self._seq, "mono": mono, "wall": wall, "event": event}
            line = encode({**frame, "attempt": attempt, "rank": rank, "pid": pid, **data})
            self._append(line)
            source = f"{self._path.parent.name}/{self._path.name}:{self._line}"
            written = Event(event, mono, wall, self._writer, self._seq, attempt, rank, pid, dict(data), source)
            self._seq += 1
        return written

    def close(self) -> None:
        """Close the file. Nothing is written: the end of its file is the writer's end."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def __enter__(self) -> HistoryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, line: bytes) -> None:
        if self._descriptor < 0:
            raise HistoryWriteError(f"{self._path}: is closed")
        # The rest of an earlier short write is ended first, or this line would be lost with it.
        payload = b"\n" + line if self._torn else line
        try:
            count = os.write(self._descriptor, payload)
        except OSError as error:
            raise HistoryWriteError(f"{self._path}: cannot be written: {error.strerror}") from error
        ended_torn_line = self._torn and count > 0
        if count < len(payload):
            self._torn = count > 1 if ended_torn_line else self._torn or count > 0
            self._line += ended_torn_line
            raise HistoryWriteError(
                f"{self._path}: only {count} of {len(payload)} bytes were written; is the disk full?"
            )
        self._torn = False
        self._line += 1 + ended_torn_line


def _end_of(path: Path) -> tuple[int, int, bool]:
    """Return the last sequence number (-1: none), the number of whole lines, and whether the last line is torn.

    The file may not exist.
    """
    last_seq, whole, torn = -1, 0, False
    try:
        for line in read_lines(path):
            torn = line.torn
            whole += not line.torn
            if line.text is None or line.torn:
                continue
            try:
                seq = decode(line.text).get("seq")
            except ValueError:
                continue  # the reader reports it
            if isinstance(seq, int) and not isinstance(seq, bool):
                last_seq = max(last_seq, seq)
    except UnreadableFile as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return -1, 0, False
        raise HistoryWriteError(str(error)) from error
    return last_seq, whole, torn
