"""A file of results that is added to for hours: one JSON object a line, and a kill loses at most the last one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class JsonLines:
    """Appends objects to a file and gives them back. Lines that a kill has torn do not count."""

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
        """Every object in the file, in order; none when there is no file."""
        try:
            text = self._path.read_text("utf-8", errors="replace")
        except FileNotFoundError:
            return []
        return [record for line in text.splitlines() if (record := _parsed(line)) is not None]

    def _is_torn(self) -> bool:
        with self._path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            return size > 0 and (file.seek(size - 1), file.read(1))[1] != b"\n"


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None
