"""Defects of a pause."""

from __future__ import annotations

from chaos.selftest.defect import Defect

DEFECTS = (
    Defect(
        name="rank-not-paused",
        what="Rank 1 says that it is paused, and trains on.",
        layer="SDK",
        base="live-tsp",
        check="mechanism",
        reason=("rank 1 was not paused",),
        verdict="unknown",
        inside="chaos.selftest.live.pausing:rank_skipped",
    ),
    Defect(
        name="pause-too-short",
        what="The ranks go on before they are told to.",
        layer="SDK",
        base="live-tsp",
        check="mechanism",
        reason=("all of them were paused for 1.",),
        inside="chaos.selftest.live.pausing:too_short",
    ),
    Defect(
        name="step-lost-in-pause",
        what="The optimizer's step counter is one step ahead after the pause, so the last step is left out.",
        layer="SDK",
        base="live-tsp",
        check="resume",
        reason=("every rank trains to step 6", "stopped after step 5"),
        inside="chaos.selftest.live.pausing:counter_moved",
    ),
    Defect(
        name="weight-changed-in-pause",
        what="One bit of one weight of rank 1 changes during the pause.",
        layer="device layer",
        base="live-tsp",
        check="consistency",
        reason=("ranks 0 and 1 disagree",),
        inside="chaos.selftest.live.pausing:weight_changed",
    ),
    Defect(
        name="pause-forgotten",
        what="The controller takes the order to pause, and forgets it.",
        layer="SDK",
        base="live-tsp",
        check="injection",
        reason=("the fault missed",),
        verdict="unknown",
        inside="chaos.selftest.live.pausing:downgraded",
    ),
)
