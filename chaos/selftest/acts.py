"""The record that a job's processes keep of the changes by a defect: where and when each was made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.base.plain_files import read_plain
from chaos.base.strict_json import parse
from chaos.selftest.live.acted import FILE


@dataclass(frozen=True)
class Act:
    """The first change that a defect has made in one process. ``rank`` and ``step`` are None outside the ranks."""

    attempt: str
    rank: int | None
    step: int | None
    changed: str

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"attempt": self.attempt, "rank": self.rank, "step": self.step, "changed": self.changed}


def acts_of(run: Path) -> tuple[Act, ...]:
    """Return the changes that this run's defect has made, in order of time; nothing if it has never acted.

    Raises UnreadableFile or ValueError if the record is not in the form that the job's processes write.
    """
    path = run / FILE
    if not path.exists():
        return ()
    first: dict[int, Act] = {}
    for text in read_plain(path).splitlines():
        line = parse(text)
        first.setdefault(line["pid"], Act(line["attempt"], line["rank"], line["step"], line["changed"]))
    return tuple(first.values())
