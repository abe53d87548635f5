"""Defects of periodic checkpoints that hold numbers, or values, of more than one step; no rank loads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from chaos.selftest.ckpt_file import CkptFile, stored
from chaos.selftest.defect import Defect
from chaos.selftest.records import Records, recorded

_ROLLED_BACK = "rank_1/mnist-2_4.ckpt"
"""The last save of rank 1, after step 10, in the good run with a rollback."""

_OLDER = "mnist-2_1.ckpt"
"""Its save after step 6."""


def _older_content(file: CkptFile, *, besides: tuple[str, ...] = ()) -> None:
    """Replace all but the values that the save appends by those of the older step."""
    appended = ("step_num", "epoch_num", *besides)
    other = CkptFile(Path(file.path).with_name(_OLDER))
    file.take([entry.tag for entry in file.entries if entry.tag not in appended], other)


def _defect(name: str, what: str, change: Callable[[CkptFile], object], *reason: str) -> Defect:
    return Defect(name, what, "files", "tre", "checkpoint", reason, mutate=stored(_ROLLED_BACK, change))


def _over_an_earlier_file(records: Records) -> None:
    """Give rank 1's save after step 9 the name of step 3."""
    for event in ("checkpoint.begin", "checkpoint.end"):
        for record in records.all(event, rank=1, step=9):
            record["path"] = str(Path(record["path"]).with_name("mnist-1_3.ckpt"))


_OF_THE_SAVE = "and by its record the rank has saved step 10"

DEFECTS = (
    _defect(
        "periodic-checkpoint-of-an-older-step",
        "The newest checkpoint of rank 1 says step 10. Its values and its count of updates are of step 6.",
        _older_content,
        f"rank 1's file holds step_num 10, global_step 6, {_OF_THE_SAVE}",
    ),
    _defect(
        "periodic-values-of-an-older-step",
        "Every number in the newest checkpoint of rank 1 says step 10, and its values are of step 6.",
        lambda file: _older_content(file, besides=("global_step",)),
        "parameters in rank 1's file of step 10 differ: ",
        "is rank 1's of step 6",
    ),
    _defect(
        "periodic-step-number-older",
        "The newest checkpoint of rank 1 holds all of step 10, and says step_num 6.",
        lambda file: file.set_number("step_num", 6),
        f"rank 1's file holds step_num 6, global_step 10, {_OF_THE_SAVE}",
    ),
    _defect(
        "periodic-step-number-lost",
        "The newest checkpoint of rank 1 holds all of step 10, and no step_num, as all others do.",
        lambda file: file.remove("step_num"),
        "rank 1's file holds no step_num, as others of its kind do",
    ),
    _defect(
        "periodic-epoch-wrong",
        "The newest checkpoint of rank 1 holds all of step 10, and says the first epoch of two.",
        lambda file: file.set_number("epoch_num", 1),
        "rank 1's file of step 10 holds epoch 1, and that step is in epoch 2",
    ),
    Defect(
        "later-step-over-an-earlier-file",
        "After its rollback rank 1 saves step 9 over its file of step 3.",
        "files",
        "tre",
        "checkpoint",
        ("rank 1 has saved step 9 over its file of step 3: job/checkpoints/rank_1/mnist-1_3.ckpt",),
        mutate=recorded(_over_an_earlier_file),
    ),
    Defect(
        name="content-of-the-save-before",
        what="The resumed job saves what it had saved before under each later step, and says the later step in it.",
        layer="job",
        base="live-plain-damage",
        check="checkpoint",
        reason=("rank 0's file holds step_num 8, global_step 6, and by its record the rank has saved step 8",),
        inside="chaos.selftest.live.damage:content_of_the_save_before",
    ),
)
