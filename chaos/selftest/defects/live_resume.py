"""Defects of a job that is started again, put into its ranks."""

from __future__ import annotations

from chaos.selftest.defect import Defect

DEFECTS = (
    Defect(
        name="step-counter-not-restored",
        what="The resumed job does not restore the optimizer's step counter.",
        layer="job",
        base="live-ttp",
        check="resume",
        reason=("the step counter is restored to 3", "step counter was 0"),
        inside="chaos.selftest.live.resume:global_step_lost",
    ),
    Defect(
        name="moments-not-restored",
        what="The resumed job does not restore the optimizer's moments.",
        layer="job",
        base="live-ttp",
        check="resume",
        reason=("parameters of rank 0 are not the file's", "moments."),
        inside="chaos.selftest.live.resume:moments_lost",
    ),
    Defect(
        name="weight-of-one-rank-not-restored",
        what="Rank 1 alone does not restore one of its weights.",
        layer="job",
        base="live-ttp",
        check="resume",
        reason=("1 of", "parameters of rank 1 are not the file's"),
        inside="chaos.selftest.live.resume:one_weight_lost",
    ),
    Defect(
        name="schedule-not-restored",
        what="The learning rate falls from its first value again, though the step counter is restored.",
        layer="job",
        base="live-ttp",
        check="loss",
        reason=("bit for bit", "step 5"),
        inside="chaos.selftest.live.resume:schedule_from_its_beginning",
    ),
    Defect(
        name="data-position-not-restored",
        what="The resumed job reads the data from the first batch again.",
        layer="job",
        base="live-ttp",
        check="resume",
        reason=("batch",),
        inside="chaos.selftest.live.resume:data_from_its_beginning",
    ),
    Defect(
        name="batch-left-out-on-resume",
        what="The first batch after the resume is left out.",
        layer="job",
        base="live-ttp",
        check="resume",
        reason=("batch",),
        inside="chaos.selftest.live.resume:batch_skipped",
    ),
    Defect(
        name="batch-repeated-on-resume",
        what="The last batch before the resume is trained a second time.",
        layer="job",
        base="live-ttp",
        check="resume",
        reason=("batch",),
        inside="chaos.selftest.live.resume:batch_twice",
    ),
    Defect(
        name="older-periodic-checkpoint",
        what="The restarted job goes on from an older periodic checkpoint than the newest.",
        layer="job",
        base="live-rsc",
        check="resume",
        reason=("step counter was 2, not 4",),
        inside="chaos.selftest.live.resume:older_checkpoint",
    ),
    Defect(
        name="trained-from-the-start",
        what="The restarted job finds no periodic checkpoint, and trains from its beginning.",
        layer="job",
        base="live-rsc",
        check="resume",
        reason=("step counter was 0, not 4",),
        inside="chaos.selftest.live.resume:from_the_beginning",
    ),
)
