"""Defects of the repair of a job of PyTorch, and of its end-of-life checkpoint."""

from __future__ import annotations

from chaos.selftest.defect import Defect

REPAIRED, REPLACED, SAVED = "live-torch-uce", "live-torch-arf", "live-torch-ttp"


def _defect(name: str, what: str, base: str, inside: str, check: str, *reason: str) -> Defect:
    """Return a defect of the loop. ``inside`` is a function of chaos.selftest.live.torch_repair."""
    return Defect(name, what, "job", base, check, reason, "fail", inside=f"chaos.selftest.live.torch_repair:{inside}")


DEFECTS = (
    _defect(
        "torch-repair-keeps-lost-memory",
        "The rank that is repaired receives the state of a replica, and does not keep it.",
        REPAIRED,
        "nothing_copied",
        "resume",
        "rank 1 held another state than that of step 3",
    ),
    _defect(
        "torch-repair-loses-moments",
        "The rank that is repaired keeps the weights of its replica, and has moments of zero.",
        REPAIRED,
        "moments_lost",
        "resume",
        "rank 1 held another state than that of step 3",
        "optimizer.exp_avg",
    ),
    _defect(
        "torch-rollback-too-far",
        "All ranks go back a step too far: they number the next step wrong, and train its batch again.",
        REPAIRED,
        "rolled_back_too_far",
        "resume",
        "step 3",
    ),
    _defect(
        "torch-rollback-leaves-noise",
        "The noise of the steps after the repair is not that of the fault-free run.",
        REPAIRED,
        "other_noise",
        "loss",
        "every loss equals the fault-free run's, bit for bit",
    ),
    _defect(
        "torch-updates-not-reported-after-repair",
        "After the repair rank 1 reports no update to the SDK: the next save would be of a step long past.",
        REPAIRED,
        "updates_not_reported",
        "mechanism",
        "protected as before",
        "rank 1 has not reported the update of step",
    ),
    _defect(
        "torch-replacement-loses-moments",
        "The new process of a lost rank keeps the weights of its replica, and has moments of zero.",
        REPLACED,
        "moments_lost",
        "resume",
        "rank 1 held another state than that of step 3",
        "optimizer.exp_avg",
    ),
    _defect(
        "torch-dump-loses-moments",
        "The end-of-life checkpoint has the weights, and moments of zero.",
        SAVED,
        "weights_saved_alone",
        "checkpoint",
        "optimizer.exp_avg",
    ),
    _defect(
        "torch-dump-restored-without-counters",
        "The job that goes on from the end-of-life checkpoint counts AdamW's steps from 0.",
        SAVED,
        "loaded_without_counters",
        "resume",
        "optimizer.step.0",
    ),
)
"""Defects of the state that a repaired rank, or a job that goes on, holds."""
