"""Recorded good runs of the selftest are held against runs made today: what is recorded, and what is caught."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path

from chaos.history.reader import read_history
from chaos.selftest.base import SCENARIOS as SCENARIOS
from chaos.selftest.catalogue import catalogue
from chaos.selftest.mutant import judge_mutant
from chaos.selftest.recorded import archive_of, unpack


def hold_against(base: str, run: Path, place: Path) -> None:
    """Fail unless the base's defects are caught in ``run``, too, and its events have the fields of recorded ones."""
    rows = [
        judge_mutant(defect, run, place / "spoilt", time.monotonic) for defect in catalogue() if defect.base == base
    ]
    assert rows and [(row.defect.name, row.seen) for row in rows if not row.caught] == []
    unpack(archive_of(base), place / "recorded")
    recorded, made = (_fields(path) for path in (place / "recorded", run))
    other = {event: recorded[event] ^ made[event] for event in set(recorded) & set(made)}
    wrong = {event: sorted(fields) for event, fields in other.items() if fields}
    assert wrong == {}, f"base {base} is to be recorded anew, as docs/design/selftest.md says"


def _fields(run: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for event in read_history(run / "history").events:
        found[event.event].update(event.data)
    return found
