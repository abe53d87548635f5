"""What is seen of an attached job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class JobEvent:
    """One thing that was seen. ``wall_ns`` is when: as the log says, else when it was noticed.

    ``before``: it had happened before the watching began.
    """

    event: str
    wall_ns: int
    rank: int | None = None
    pid: int | None = None
    data: dict[str, Any] = field(default_factory=dict)
    before: bool = False
