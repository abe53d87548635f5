"""Defects of launches that nothing has to answer, and of a job without anything to go on from."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.files import removed
from chaos.selftest.records import Records, recorded

LAST = 8
CHANGED = 4
"""Step of the base ``harmless`` with a batch changed by a fault; its states are compared up to the step before."""

_STEP = ("step.begin", "step.end", "digest")


_defect = partial(file_defect, base="harmless", check="resume")


def _without(first: int, last: int, *ranks: int) -> Mutate:
    """Return a mutation: these ranks leave out the steps from ``first`` to ``last``."""

    def change(records: Records) -> None:
        for rank in ranks:
            rank_records = records.all(attempt="train", rank=rank)
            records.drop(
                [record for record in rank_records if record["event"] in _STEP and first <= record["step"] <= last]
            )

    return recorded(change)


def _again(records: Records) -> None:
    """Let all ranks train steps 6 and 7 a second time after the last one."""
    for rank in (0, 1):
        step_records = [record for step in (6, 7) for record in records.all(attempt="train", rank=rank, step=step)]
        after = records.digest(rank, LAST)
        for record in (candidate for candidate in step_records if candidate["event"] in _STEP):
            after = records.insert(
                after, **{key: value for key, value in record.items() if key not in ("mono", "wall")}
            )


def _other_batches(records: Records) -> None:
    """Train every step after the changed one on other data."""
    for record in records.all("digest", attempt="train"):
        if record["step"] > CHANGED:
            record["batch"] = f"{record['rank']}{record['step']:031x}"


def _digests_end(records: Records) -> None:
    records.drop([record for record in records.all("digest", attempt="train", rank=1) if record["step"] > CHANGED])


def _without_gradients(records: Records) -> None:
    """Keep rank 1's records of its gradients before the fault only."""
    for record in records.all("digest", attempt="train", rank=1):
        if record["step"] >= CHANGED:
            record["gradients"] = None


def _without_parameters(records: Records) -> None:
    """Remove the state of every rank from the steps after the fault."""
    for record in records.all("digest", attempt="train"):
        if record["step"] > CHANGED:
            record["parameters"] = None


def _exits(change: dict[str, int]) -> Mutate:
    return recorded(lambda records: records.end(records.first("rank.exit", attempt="resume", rank=1), **change))


def _never_came(run_dir: Path) -> None:
    """Leave rank 1 out when the job is started again."""

    def change(records: Records) -> None:
        records.drop_file("resume-rank_1")
        records.drop(records.all(attempt="resume", rank=1))

    recorded(change)(run_dir)


DEFECTS = (
    _defect(
        "training-ends-early",
        "All ranks end with 0 after step 5 of 8, without a fault.",
        _without(6, LAST, 0, 1),
        "every rank trains to step 8",
        "rank 0 stopped after step 5",
    ),
    _defect(
        "rank-ends-early",
        "Rank 1 alone ends with 0 after step 5 of 8.",
        _without(6, LAST, 1),
        "every rank trains to step 8",
        "rank 1 stopped after step 5",
    ),
    _defect(
        "steps-left-out",
        "All ranks leave steps 6 and 7 out under a fault that needs no mechanism.",
        _without(6, 7, 0, 1),
        "rank 0 skipped step 6 in attempt train (step 8 after step 5)",
    ),
    _defect(
        "steps-trained-again",
        "All ranks train steps 6 and 7 twice under a fault that needs no mechanism.",
        recorded(_again),
        "rank 0 trained step 6 twice in attempt train (after step 8)",
    ),
    _defect(
        "other-batches-after-the-changed-one",
        "The changed batch and all later batches differ.",
        recorded(_other_batches),
        "rank 0 trained another batch at step 5, which the baseline never trained on this rank",
    ),
    _defect(
        "batches-not-recorded",
        "Rank 1's batches after the changed batch are not recorded.",
        recorded(_digests_end),
        "no batch of rank 1 at step 5 was recorded",
        verdict="unknown",
    ),
    _defect(
        "gradients-not-recorded",
        "Rank 1's gradients after the fault are not recorded.",
        recorded(_without_gradients),
        "no gradients of rank 1 were recorded at step 8",
        check="loss",
        verdict="unknown",
    ),
    _defect(
        "states-not-recorded",
        "No rank's weights after the fault are recorded.",
        recorded(_without_parameters),
        "no digests to compare ranks 0-1 by after step 8 in attempt train",
        check="consistency",
        verdict="unknown",
    ),
    _defect(
        "launcher-fails",
        "The launcher of a job without a fault ends with 1.",
        recorded(lambda records: records.first("launcher.exit", attempt="train").update(code=1)),
        "the launcher of attempt train exits with 0",
        "exit code 1",
        check="hygiene",
    ),
    _defect(
        "job-directory-not-kept",
        "The job's directory was not brought back, so its saves cannot be checked.",
        removed("job"),
        "the job's directory was not kept",
        check="checkpoint",
        verdict="unknown",
    ),
    _defect(
        "refusal-of-one-rank",
        "One rank reports that it has no checkpoint to go on from; the other ends with 0 and has trained nothing.",
        _exits({"code": 0}),
        "rank 1 ended as if it had trained: exit code 0",
        base="refused",
    ),
    _defect(
        "refusal-with-an-unknown-end",
        "One rank reports that it has no checkpoint to go on from; the end of the other is not recorded.",
        recorded(lambda records: records.drop(records.all("rank.exit", attempt="resume", rank=1))),
        "no exit status of rank 1 was recorded",
        base="refused",
        verdict="unknown",
    ),
    _defect(
        "refusal-without-a-rank",
        "One rank reports that it has no checkpoint to go on from; the other never started.",
        _never_came,
        "no exit status of rank 1 was recorded",
        base="refused",
        verdict="unknown",
    ),
)
