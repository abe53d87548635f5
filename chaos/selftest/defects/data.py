"""Defects of the data: its position, its random state, a batch left out or trained twice."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.records import Records, recorded

RESUMED = 7
LAST = 10


_defect = partial(file_defect, base="ttp", check="resume")


def _batches(rank: int, first: int, shift: int, attempt: str = "resume") -> Mutate:
    """Return a mutation: from step ``first`` on the rank trains the batches of ``shift`` steps later."""

    def mutate(run_dir: Path) -> None:
        baseline = Records(run_dir, baseline=True)
        theirs = {step: baseline.digest(rank, step)["batch"] for step in range(1, LAST + 1)}

        def change(records: Records) -> None:
            for step in range(first, LAST + 1):
                digest = records.digest(rank, step, attempt)
                digest["batch"] = theirs.get(step + shift, "0" * 32)

        recorded(change)(run_dir)

    return mutate


def _drawn_anew(records: Records) -> None:
    """Record an order of the data that was drawn with another random state."""
    for rank in range(4):
        for record in records.all("digest", attempt="resume", rank=rank):
            record["batch"] = f"{rank}{record['step']:031x}"


DEFECTS = (
    _defect(
        "data-position-reset",
        "The data of rank 2 begins from its first batch again.",
        _batches(2, RESUMED, 1 - RESUMED),
        "rank 2 trained another batch at step 7",
        "so a batch was trained twice",
    ),
    _defect(
        "data-shuffled-anew",
        "The data is shuffled anew after the resume.",
        recorded(_drawn_anew),
        "rank 0 trained another batch at step 7, which the baseline never trained on this rank",
    ),
    _defect(
        "batch-skipped",
        "Rank 2 leaves one batch out after the resume.",
        _batches(2, RESUMED, 1),
        "rank 2 trained another batch at step 7: the baseline's batch of step 8, so a batch was skipped",
    ),
    _defect(
        "batch-trained-twice",
        "Rank 2 trains one batch twice after the resume.",
        _batches(2, 8, -1),
        "rank 2 trained another batch at step 8: the baseline's batch of step 7, so a batch was trained twice",
    ),
    _defect(
        "batch-skipped-after-repair",
        "Rank 1 leaves the batch out during which its memory failed.",
        _batches(1, 5, 1, "train"),
        "rank 1 trained another batch at step 5: the baseline's batch of step 6, so a batch was skipped",
        base="uce",
    ),
    _defect(
        "batch-trained-twice-after-replacement",
        "The new process of rank 2 begins one batch too early.",
        _batches(2, 5, -1, "train"),
        "rank 2 trained another batch at step 5: the baseline's batch of step 4, so a batch was trained twice",
        base="arf",
    ),
    _defect(
        "batch-skipped-after-rollback",
        "After the rollback rank 0 goes on with the data where it was before.",
        _batches(0, 7, 2, "train"),
        "rank 0 trained another batch at step 7: the baseline's batch of step 9, so a batch was skipped",
        base="tre",
    ),
)
