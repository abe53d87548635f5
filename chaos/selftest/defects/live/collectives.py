"""Defects of the sums over gradients after a recovery."""

from __future__ import annotations

from chaos.selftest.defect import Defect

DEFECTS = (
    Defect(
        name="sums-drift-by-a-millionth",
        what="After the repair sums are too large by one part in a million.",
        layer="device layer",
        base="live-hcce",
        check="loss",
        reason=("first at rank 0",),
        inside="chaos.selftest.live.collectives:drift",
    ),
    Defect(
        name="sums-drift-on-one-rank",
        what="After the repair sums are too large by one part in a million on rank 1: rank 0's are right.",
        layer="device layer",
        base="live-hcce",
        check="consistency",
        reason=("ranks 0 and 1 disagree after step 3",),
        inside="chaos.selftest.live.collectives:drift_on_one_rank",
    ),
    Defect(
        name="gradients-of-a-rank-left-out",
        what="After the repair the gradients of rank 1 are left out of the sum.",
        layer="device layer",
        base="live-hcce",
        check="loss",
        reason=("first at rank 0, step 4: loss",),
        inside="chaos.selftest.live.collectives:gradient_dropped",
    ),
    Defect(
        name="sums-in-order-of-arrival",
        what="After the repair each rank sums the others' gradients in an order of its own.",
        layer="device layer",
        base="live-hcce",
        check="consistency",
        reason=("disagree after step 3",),
        inside="chaos.selftest.live.collectives:order_of_arrival",
    ),
    Defect(
        name="job-not-deterministic",
        what="Each rank sums in an order of its own from the first step on: nothing can be compared.",
        layer="device layer",
        base="live-hcce",
        check="loss",
        reason=("the job is not deterministic",),
        verdict="unknown",
        inside="chaos.selftest.live.collectives:order_from_the_beginning",
    ),
    Defect(
        name="last-update-drifts",
        what="Sums are too large by one part in a million in the last step alone: every loss is right.",
        layer="device layer",
        base="live-hcce",
        check="loss",
        reason=("weights and optimizer state equal the fault-free run's", "first at rank 0, step 6"),
        inside="chaos.selftest.live.collectives:last_update_drifts",
    ),
)
