"""Defects of time: a phase is over its budget."""

from __future__ import annotations

from chaos.selftest.defect import Defect

DEFECTS = (
    Defect(
        name="detection-over-budget",
        what="The controller believes what the ranks report 4 s after the budget is over.",
        layer="SDK",
        base="live-uce",
        check="recovery",
        reason=("detection ≤ 8 s", "12."),
        inside="chaos.selftest.live.times:late_detection",
    ),
    Defect(
        name="repair-over-budget",
        what="The controller lets the ranks go on 4 s after the budget of the repair is over.",
        layer="SDK",
        base="live-uce",
        check="recovery",
        reason=("repair ≤ 8 s", "12."),
        inside="chaos.selftest.live.times:late_repair",
    ),
)
