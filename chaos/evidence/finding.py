"""A check's statement: three-valued, and never without the expectation and the observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["pass", "fail", "unknown"]

_ORDER: dict[Verdict, int] = {"pass": 0, "unknown": 1, "fail": 2}


@dataclass(frozen=True)
class Mismatch:
    """The values of a rank that differ from those that it should have, as data.

    ``parameters`` are the names of all that differ, in order, and empty for a ``loss``; ``of`` is the number of those
    that were compared. ``step`` is the first step at which they differ. None where a statement does not know it.
    """

    what: Literal["state", "loss"]
    parameters: tuple[str, ...] = ()
    of: int | None = None
    step: int | None = None


@dataclass(frozen=True)
class Finding:
    """One statement of one check.

    ``by_log``: it rests on lines of a log alone, since no other evidence exists (docs/log-evidence.md). ``where`` lists
    places to look at: ``scenario.yaml:12``, ``history/rank_2.jsonl:88``, a checkpoint file. ``mismatch`` says as data
    which values differ, for statements about values.
    """

    check: str
    verdict: Verdict
    expected: str
    seen: str
    where: tuple[str, ...] = ()
    by_log: bool = False
    mismatch: Mismatch | None = None


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return the worst verdict: fail, then unknown, then pass. Nothing checked at all is unknown."""
    return max(verdicts, key=_ORDER.__getitem__) if verdicts else "unknown"
