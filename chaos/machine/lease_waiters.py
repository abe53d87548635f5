"""The processes that wait for a lease: records beside the locks, for whoever shows what goes on.

A record decides nothing, and counts only while the process that it names lives.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chaos.base.plain_files import read_plain
from chaos.machine.lease_holder import Holder, this_holder, write_record

_LONGEST = 1 << 16


@dataclass(frozen=True)
class Waiter:
    """A process that waits since ``process.since``, for ``limit`` seconds at most (None: not recorded)."""

    process: Holder
    limit: float | None


class Waiters:
    """The records of those that wait for a lease of one kind."""

    def __init__(self, directory: Path, kind: str) -> None:
        self._directory = directory
        self._kind = kind

    def listed(self) -> list[Waiter]:
        """Return the living processes that wait, the longest wait first."""
        waiters = [waiter for path in self._paths() if (waiter := _read(path)) is not None]
        return sorted(waiters, key=lambda waiter: waiter.process.since)

    def add(self, limit: float | None) -> None:
        """Record that this process waits from now on; remove the records of processes that have ended."""
        for path in self._paths():
            if _read(path) is None:
                _remove(path)
        write_record(self._own, {**asdict(this_holder()), "limit": limit})

    def remove(self) -> None:
        """Remove the record of this process."""
        _remove(self._own)

    @property
    def _own(self) -> Path:
        return self._directory / f"{self._kind}-wait-{os.getpid()}.json"

    def _paths(self) -> Iterator[Path]:
        with contextlib.suppress(OSError):
            yield from sorted(self._directory.glob(f"{self._kind}-wait-*.json"))


def _read(path: Path) -> Waiter | None:
    try:
        record: Any = json.loads(read_plain(path, _LONGEST))
        limit = record.pop("limit")
        process = Holder(**record)
        limited = isinstance(limit, (int, float)) and not isinstance(limit, bool) and math.isfinite(limit)
        return Waiter(process, float(limit) if limited else None) if process.lives else None
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return None


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
