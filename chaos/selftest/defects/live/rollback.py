"""Defects of a rollback after an abnormal norm."""

from __future__ import annotations

from chaos.selftest.defect import Defect

DEFECTS = (
    Defect(
        name="rolled-back-too-far",
        what="The ranks go back to the checkpoint before the newest.",
        layer="job",
        base="live-tre",
        check="mechanism",
        reason=("loaded what it had saved after step 2",),
        inside="chaos.selftest.live.rollback:one_checkpoint_too_far",
    ),
    Defect(
        name="moments-not-rolled-back",
        what="The weights go back, the optimizer's moments do not.",
        layer="job",
        base="live-tre",
        check="resume",
        reason=("held another state than that of step 4", "moments."),
        inside="chaos.selftest.live.rollback:moments_not_rolled_back",
    ),
    Defect(
        name="data-not-rolled-back",
        what="The data goes on one batch too far after the rollback.",
        layer="job",
        base="live-tre",
        check="resume",
        reason=("trained another batch at step 5: the baseline's batch of step 6, so a batch was skipped",),
        inside="chaos.selftest.live.rollback:data_not_rolled_back",
    ),
    Defect(
        name="norm-record-not-written",
        what="Rank 0 keeps no abnormal_global_norm.json.",
        layer="job",
        base="live-tre",
        check="mechanism",
        reason=("there is no abnormal_global_norm.json, step 6 should be in it",),
        inside="chaos.selftest.live.rollback:record_not_written",
    ),
    Defect(
        name="norm-record-of-another-step",
        what="abnormal_global_norm.json holds the norm under another step.",
        layer="job",
        base="live-tre",
        check="mechanism",
        reason=("step 6 has 0 norms, not 1",),
        inside="chaos.selftest.live.rollback:record_stale",
    ),
    Defect(
        name="rolled-back-twice",
        what="A second rollback follows the first without an abnormal norm.",
        layer="job",
        base="live-tre",
        check="mechanism",
        reason=("from steps [4, 4], not [4]",),
        inside="chaos.selftest.live.rollback:rolled_back_twice",
    ),
    Defect(
        name="norm-not-watched",
        what="The monitor does not see the norm: training goes on from the abnormal step.",
        layer="job",
        base="live-tre",
        check="mechanism",
        reason=("loaded no checkpoint",),
        inside="chaos.selftest.live.rollback:threshold_ignored",
    ),
    Defect(
        name="next-checkpoint-spoilt",
        what="The last periodic checkpoint, saved after the rollback, has moments of zero; no rank loads it.",
        layer="job",
        base="live-tre",
        check="checkpoint",
        reason=("every periodic checkpoint holds", "in rank 0's file of step 8", "moments."),
        inside="chaos.selftest.live.rollback:next_checkpoint_spoilt",
    ),
)
