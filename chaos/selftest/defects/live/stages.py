"""Defects of a pipeline in plain Python, each in one stage or one slice of it."""

from __future__ import annotations

from chaos.selftest.defect import Defect

DEFECTS = (
    Defect(
        name="stage-of-another-step",
        what="The last stage of the resumed job goes on with the state of an earlier save under the later step.",
        layer="job",
        base="live-plain-stages",
        check="loss",
        reason=("first at rank 2, step 5: loss",),
        inside="chaos.selftest.live.stages:stage_of_another_step",
    ),
    Defect(
        name="stage-begins-earlier",
        what="The last stage of the resumed job goes on from an earlier save than its first stage.",
        layer="job",
        base="live-plain-stages",
        check="resume",
        reason=("rank 2 began with step 3, rank 0 with step 5",),
        inside="chaos.selftest.live.stages:stage_begins_earlier",
    ),
    Defect(
        name="slices-swapped",
        what="Each rank of the resumed job loads the slices of the other rank of its stage.",
        layer="job",
        base="live-plain-stages",
        check="resume",
        reason=("rank 0 loaded rank 1's file, of another replica group",),
        inside="chaos.selftest.live.stages:slices_swapped",
    ),
    Defect(
        name="slices-swapped-in-memory",
        what="Each rank loads its own slices, and exchanges a weight with the other rank of its stage.",
        layer="job",
        base="live-plain-stages",
        check="resume",
        reason=("parameters of rank 0 are not the file's: layer1.weight",),
        inside="chaos.selftest.live.stages:slices_swapped_in_memory",
    ),
    Defect(
        name="losses-of-last-stage-lost",
        what="The last stage of the resumed job does not know its losses; the first stage never does.",
        layer="job",
        base="live-plain-stages",
        check="loss",
        reason=("no loss of rank 2 at step 5",),
        verdict="unknown",
        inside="chaos.selftest.live.stages:losses_lost",
    ),
    Defect(
        name="activations-of-step-before",
        what="The first stage of the resumed job sends the activations of the step before.",
        layer="device layer",
        base="live-plain-stages",
        check="loss",
        reason=("first at rank 2, step 6: loss",),
        inside="chaos.selftest.live.stages:activations_of_the_step_before",
    ),
    Defect(
        name="gradients-to-first-stage-halved",
        what="The last stage of the resumed job sends back only half of the gradients to the first one.",
        layer="device layer",
        base="live-plain-stages",
        check="loss",
        reason=("weights and optimizer state equal the fault-free run's", "first at rank 0, step 5"),
        inside="chaos.selftest.live.stages:gradients_not_sent_back",
    ),
)
