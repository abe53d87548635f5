"""The event that a log reader makes of a known line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class LogEvent:
    """One fact, as a line of a log states it.

    ``kind`` is ``<source>.<what>``, for example ``ttp.state``. ``wall_ns`` is nanoseconds since the epoch, None when
    the line carries no time. ``rank`` and ``step`` are the subject of the line; a statement of a rank's own log about
    that rank has its rank. ``pid`` is the process that wrote it, if the line or the name of the file names it.
    ``fields`` holds everything else. ``file`` and ``line`` (from 1) are the place to quote as evidence;
    ``chaos.observe.logs.reader.read_log`` fills them in.
    """

    kind: str
    wall_ns: int | None = None
    rank: int | None = None
    step: int | None = None
    pid: int | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    file: str = ""
    line: int = 0

    @property
    def source(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"
