"""Defects of how processes end, put into them."""

from __future__ import annotations

from chaos.selftest.defect import Defect

DEFECTS = (
    Defect(
        name="orphan-of-a-rank",
        what="A rank that exits leaves a process behind, in a session of its own.",
        layer="job",
        base="live-ttp",
        check="hygiene",
        reason=("outlived the ranks of attempt train", "sleep 3600"),
        inside="chaos.selftest.live.ending:orphan",
    ),
    Defect(
        name="rank-hangs-at-exit",
        what="A rank that is told to exit stays for ever.",
        layer="SDK",
        base="live-ttp",
        check="run",
        reason=("not exited: rank 0: step 4; see logs/train",),
        inside="chaos.selftest.live.ending:hangs_at_exit",
    ),
    Defect(
        name="rank-hangs-after-training",
        what="The resumed job has trained to its last step, and rank 1 does not end.",
        layer="SDK",
        base="live-ttp",
        check="run",
        reason=("not exited: rank 1: step 6; see logs/resume",),
        inside="chaos.selftest.live.ending:hangs_after_training",
    ),
    Defect(
        name="hidden-orphan",
        what="A rank that exits leaves a process behind that has nothing of the run in its environment.",
        layer="job",
        base="live-ttp",
        check="hygiene",
        reason=("outlived the ranks of attempt train", "sleep 3601"),
        inside="chaos.selftest.live.ending:hidden_orphan",
    ),
)
