"""Defects of the fault itself: without proof that it was made as planned, no check may blame the job."""

from __future__ import annotations

from chaos.selftest.defect import Defect

DEFECTS = (
    Defect(
        name="error-not-raised",
        what="The rank is told to raise an error, and does not.",
        layer="device layer",
        base="live-uce",
        check="injection",
        reason=("the fault missed: rank 1 has ended and has not recorded that it raised the error",),
        verdict="unknown",
        inside="chaos.selftest.live.faults:not_made",
    ),
    Defect(
        name="error-one-step-late",
        what="The rank reports the barrier when it is already at the barrier of the next step.",
        layer="device layer",
        base="live-uce",
        check="injection",
        reason=("step 4",),
        verdict="unknown",
        inside="chaos.selftest.live.faults:one_step_late",
    ),
    Defect(
        name="error-in-wrong-rank",
        what="The error is raised in rank 0, and not in the rank that was told to.",
        layer="device layer",
        base="live-uce",
        check="injection",
        reason=("rank 0 raised it, which was not planned",),
        verdict="unknown",
        inside="chaos.selftest.live.faults:wrong_rank",
    ),
    Defect(
        name="error-raised-again",
        what="The error comes a second time when its step is trained again.",
        layer="device layer",
        base="live-uce",
        check="injection",
        reason=("raised more than once on rank 1",),
        inside="chaos.selftest.live.faults:raised_again",
    ),
    Defect(
        name="memory-not-lost",
        what="The memory error takes nothing from the rank: a repair proves nothing.",
        layer="device layer",
        base="live-uce",
        check="injection",
        reason=("rank 1 has not lost any parameter",),
        verdict="unknown",
        inside="chaos.selftest.live.faults:memory_not_lost",
    ),
    Defect(
        name="spike-too-small",
        what="The gradients are scaled by half of the factor that the requested norm needs.",
        layer="device layer",
        base="live-tre",
        check="injection",
        reason=("the global norm of step 6 came to",),
        verdict="unknown",
        inside="chaos.selftest.live.faults:spike_too_small",
    ),
    Defect(
        name="spike-made-again",
        what="The gradients are scaled a second time when the step is trained again.",
        layer="device layer",
        base="live-tre",
        check="injection",
        reason=("scaled too often on rank 1",),
        inside="chaos.selftest.live.faults:spike_again",
    ),
)
