"""An event of an attached job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class JobEvent:
    """One event. ``wall_ns`` is its time: by the log, else the time at which it was noticed.

    ``before``: the event happened before the watching began.
    """

    event: str
    wall_ns: int
    rank: int | None = None
    pid: int | None = None
    data: dict[str, Any] = field(default_factory=dict)
    before: bool = False
