"""Defects of the replacement of lost ranks."""

from __future__ import annotations

from chaos.selftest.defect import Defect

DEFECTS = (
    Defect(
        name="state-of-dead-rank-kept",
        what="The new process of a lost rank takes the state of an earlier step that the dead process had kept.",
        layer="device layer",
        base="live-arf",
        check="resume",
        reason=("rank 2 held another state than that of step 2", "of step 1"),
        inside="chaos.selftest.live.repair:old_state_kept",
    ),
    Defect(
        name="replacement-without-moments",
        what="The new process of a lost rank gets the weights of its replica, and moments of zero.",
        layer="device layer",
        base="live-arf",
        check="resume",
        reason=("rank 2 held another state than that of step 2", "moments."),
        inside="chaos.selftest.live.repair:moments_not_copied",
    ),
    Defect(
        name="replacement-gets-stale-state",
        what="The replica gives the new process its state as it was before its last update.",
        layer="device layer",
        base="live-arf",
        check="resume",
        reason=("rank 2 held another state than that of step 2",),
        inside="chaos.selftest.live.repair:stale_copy",
    ),
    Defect(
        name="survivor-restarted",
        what="The cluster's agent takes a healthy rank for lost, and starts it again as well.",
        layer="SDK",
        base="live-arf",
        check="mechanism",
        reason=("rank 1 was replaced",),
        inside="chaos.selftest.live.replacement:survivor_restarted",
    ),
    Defect(
        name="replacement-downgraded",
        what="A checkpoint is saved and the job ended, where the lost rank should have been replaced.",
        layer="SDK",
        base="live-arf",
        check="mechanism",
        reason=("it did not act",),
        inside="chaos.selftest.live.replacement:restart_of_all",
    ),
    Defect(
        name="restarted-twice",
        what="The cluster's agent kills and starts all ranks, and then repeats this.",
        layer="SDK",
        base="live-rsc",
        check="mechanism",
        reason=("rank 0 was replaced: processes",),
        inside="chaos.selftest.live.replacement:restarted_twice",
    ),
)
