"""Defects of faults that hold until the harness ends them: another program ends them early, or nothing checks them."""

from __future__ import annotations

from functools import partial
from typing import Any

from chaos.selftest.defect import file_defect
from chaos.selftest.records import Records, recorded

BASE = "held"


_defect = partial(file_defect, base=BASE, check="injection", verdict="unknown")


def _at_end(records: Records, fault: str) -> dict[str, Any]:
    """Return the observation just before the fault was ended."""
    (entry,) = records.first("fault.ending", fault=fault)["evidence"]
    evidence: dict[str, Any] = entry
    return evidence


def _goes_on(records: Records) -> None:
    """Let the stopped rank begin its step 0.3 s after the landing."""
    landed = records.first("fault.landed", fault="stop")
    reached = records.first("barrier.reached", attempt="train", rank=1)
    at = {key: landed[key] + 300_000_000 for key in ("mono", "wall")}
    begun = records.insert(reached, event="step.begin", **at)
    for key in ("fault", "phase"):
        del begun[key]


DEFECTS = (
    _defect(
        "load-ended-early",
        "The process that held memory was ended by the kernel before the launch had ended.",
        recorded(lambda records: _at_end(records, "memory").pop("resident")),
        "nothing shows that rank 0 was under the fault until the launch ended: resident is None",
    ),
    _defect(
        "load-not-looked-at",
        "The harness did not check at the end whether the process that held memory was still there.",
        recorded(lambda records: records.drop(records.all("fault.ending", fault="memory"))),
        "no check was made whether rank 0 was still under the fault when the launch ended",
    ),
    _defect(
        "stopped-rank-goes-on",
        "The stopped rank begins its step a moment later.",
        recorded(_goes_on),
        "rank 1 went on after the landing: step.begin",
    ),
    _defect(
        "stopped-rank-let-go",
        "Another program had continued the stopped rank before the harness did.",
        recorded(lambda records: _at_end(records, "stop").update(signal=None)),
        "nothing shows that rank 1 was under the fault up to its end",
    ),
)
