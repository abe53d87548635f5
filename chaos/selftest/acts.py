"""Where and when a defect in the processes of a job has acted, by what those have written down."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.base.plain_files import read_plain
from chaos.base.strict_json import parse
from chaos.selftest.live.acted import FILE


@dataclass(frozen=True)
class Act:
    """The first change that a defect has made in one process. ``rank`` is None outside the ranks, as is ``step``."""

    attempt: str
    rank: int | None
    step: int | None
    changed: str

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"attempt": self.attempt, "rank": self.rank, "step": self.step, "changed": self.changed}


def acts_of(run: Path) -> tuple[Act, ...]:
    """What the defect of this run has changed, first things first; nothing if it has never acted.

    Raises UnreadableFile or ValueError where the record is not what the job's processes write.
    """
    path = run / FILE
    if not path.exists():
        return ()
    first: dict[int, Act] = {}
    for text in read_plain(path).splitlines():
        line = parse(text)
        first.setdefault(line["pid"], Act(line["attempt"], line["rank"], line["step"], line["changed"]))
    return tuple(first.values())
