"""A check's statement: three-valued, and never without the expectation and the observation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaos.evidence.statement_data import NO_DATA, StatementData

Verdict = Literal["pass", "fail", "unknown"]

_ORDER: dict[Verdict, int] = {"pass": 0, "unknown": 1, "fail": 2}


@dataclass(frozen=True)
class Finding:
    """One statement of one check.

    ``by_log``: it rests on lines of a log alone, since no other evidence exists (docs/design/log-evidence.md).
    ``where`` lists places to look at: ``scenario.yaml:12``, ``history/rank_2.jsonl:88``, a checkpoint file. ``data``
    says as data what the sentences ``expected`` and ``seen`` say.
    """

    check: str
    verdict: Verdict
    expected: str
    seen: str
    where: tuple[str, ...] = ()
    by_log: bool = False
    data: StatementData = NO_DATA


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return the worst verdict: fail, then unknown, then pass. Nothing checked at all is unknown."""
    return max(verdicts, key=_ORDER.__getitem__) if verdicts else "unknown"
