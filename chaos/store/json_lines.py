"""A file of results that grows for hours: one JSON object per line, and a kill loses at most the last object."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from chaos.history.jsonl import UnreadableFile, decode, read_lines


class JsonLines:
    """Appends objects to a file and reads them back. Lines torn by a kill do not count."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, record: dict[str, Any]) -> None:
        """Add an object, in one write to the disk."""
        line = (json.dumps(record) + "\n").encode()
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if self._is_torn():
                line = b"\n" + line
            os.write(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self) -> list[dict[str, Any]]:
        """Return every object in the file, in order; none when there is no file. Raises UnreadableFile."""
        try:
            lines = [line.text for line in read_lines(self._path) if line.text is not None]
        except UnreadableFile as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return []
            raise
        return [record for line in lines if (record := _parsed(line)) is not None]

    def _is_torn(self) -> bool:
        with self._path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            return size > 0 and (file.seek(size - 1), file.read(1))[1] != b"\n"


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        return decode(line)
    except ValueError:
        return None
