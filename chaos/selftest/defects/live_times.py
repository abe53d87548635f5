"""Defects of time: a phase is over its budget by a little."""

from __future__ import annotations

from chaos.selftest.defect import Defect

DEFECTS = (
    Defect(
        name="detection-over-budget",
        what="The controller believes what the ranks report 50 ms after the budget is over.",
        layer="SDK",
        base="live-uce",
        check="recovery",
        reason=("detection ≤ 8 s", "8."),
        inside="chaos.selftest.live.times:late_detection",
    ),
    Defect(
        name="repair-over-budget",
        what="The controller lets the ranks go on 50 ms after the budget of the repair is over.",
        layer="SDK",
        base="live-uce",
        check="recovery",
        reason=("repair ≤ 8 s", "8."),
        inside="chaos.selftest.live.times:late_repair",
    ),
)
