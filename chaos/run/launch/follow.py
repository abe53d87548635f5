"""Follows the output of a run while it runs: the ranks' history files, and the job's logs.

Only for triggers, deadlines and the live view. Verdicts are made from the files afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from chaos.history.jsonl import decode

_CHUNK = 1 << 20
_WRITTEN = 1 << 13
"""Bytes of a file in memory that are read at first: most of it is not written yet."""


class TailedFile:
    """New whole lines of one growing file.

    With ``mapped``, NUL bytes end the written part (see the agent's record); else they are ordinary bytes. Another file
    under its name (a log of a rank that was started again) is read from its beginning.
    """

    def __init__(self, path: Path, *, mapped: bool = False) -> None:
        self._path = path
        self._mapped = mapped
        self._offset = 0
        self._inode: int | None = None

    def new_lines(self) -> Iterator[bytes]:
        """Yield the lines completed since the last call."""
        try:
            with self._path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                if inode != self._inode:
                    self._inode, self._offset = inode, 0
                file.seek(self._offset)
                written = _written(file) if self._mapped else file.read(_CHUNK)
        except FileNotFoundError:
            return
        end = written.rfind(b"\n") + 1
        if end == 0 and len(written) == _CHUNK:
            end = _CHUNK  # a line longer than a chunk: passed on in pieces, so that memory stays bounded
        self._offset += end
        yield from written[:end].splitlines()


def _written(file: BinaryIO) -> bytes:
    """Return the written part of a mapped file from its position, up to a chunk."""
    content, size = bytearray(), _WRITTEN
    while len(content) < _CHUNK and (data := file.read(min(size, _CHUNK - len(content)))):
        before, end, _ = data.partition(b"\0")
        content += before
        if end:
            break
        size *= 4
    return bytes(content)


class RankFollower:
    """The events that the ranks of one attempt have recorded since the last look."""

    def __init__(self, history: Path, attempt: str) -> None:
        self._history = history
        self._pattern = f"{attempt}-rank_*.jsonl"
        self._files: dict[Path, TailedFile] = {}

    def new_events(self) -> Iterator[dict[str, Any]]:
        """Yield the events as they stand in the files; a line that is not JSON is left to the history's reader."""
        for path in sorted(self._history.glob(self._pattern)):
            tail = self._files.setdefault(path, TailedFile(path, mapped=True))
            for line in tail.new_lines():
                try:
                    event = decode(line)
                except ValueError:
                    continue
                if isinstance(event, dict):
                    yield event


class LogFollower:
    """Lines that the ranks (and, as None, launcher and scheduler) have logged since the last look."""

    def __init__(self, logs: Path, ranks: int) -> None:
        self._tails: list[tuple[int | None, TailedFile]] = [
            (rank, TailedFile(logs / f"worker_{rank}.log")) for rank in range(ranks)
        ]
        self._tails += [(None, TailedFile(logs / name)) for name in ("scheduler.log", "msrun.log")]

    def new_lines(self) -> Iterator[tuple[int | None, str]]:
        """Yield (rank or None, line)."""
        for rank, tail in self._tails:
            for line in tail.new_lines():
                yield rank, line.decode("utf-8", "replace")
