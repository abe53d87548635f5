"""Part of check ``loss``: the values of every parameter can be read, so that a digest stands for them.

A job may have tensors of a class of its own. The agent leaves the job alone where it cannot read one.
"""

from __future__ import annotations

from chaos.evidence.collect import Collector
from chaos.evidence.facts import text_list
from chaos.evidence.statement_data import about
from chaos.history.reader import History

EXPECTED = "every weight and all optimizer state can be read, and are compared"


def judge_readable(history: History, collector: Collector) -> None:
    """Say, once for each rank, which tensors could not be read. Says nothing where all could."""
    ranks: set[int | None] = set()
    for event in (*history.select("initial"), *history.select("digest")):
        reasons = event.data.get("unreadable")
        if isinstance(reasons, dict) and reasons and event.rank not in ranks:
            ranks.add(event.rank)
            names = sorted(map(str, reasons))
            observation = f"rank {event.rank} has no digest of {text_list(names)}, since {reasons[names[0]]}"
            collector.unknown(EXPECTED, observation, event.source, data=about(event.rank, parameters=names))
