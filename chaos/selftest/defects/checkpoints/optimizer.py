"""Defects of the optimizer's state in the end-of-life checkpoint: moments, step counter, schedule."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from chaos.selftest.ckpt_file import CkptFile, stored
from chaos.selftest.defect import file_defect

EVERY = "ttp_saved_checkpoints-step_6/rank_*/*.ckpt"
RANK_0 = "ttp_saved_checkpoints-step_6/rank_0/*.ckpt"
RANK_1 = "ttp_saved_checkpoints-step_6/rank_1/*.ckpt"


_defect = partial(file_defect, base="ttp", check="checkpoint")


def _without_moments(file: CkptFile) -> None:
    for tag in file.moments():
        file.remove(tag)


def _with_moments_of_zero(file: CkptFile) -> None:
    for tag in file.moments():
        file.set_content(tag, bytes(len(file.content(tag))))


def _with_older_moments(run_dir: Path) -> None:
    (older,) = (run_dir / "job/checkpoints").glob("rank_0/*-1_4.ckpt")
    old = CkptFile(older)
    stored(RANK_0, lambda file: file.take(old.moments(), old))(run_dir)


def _with_another_schedule(file: CkptFile) -> None:
    file.set_content("learning_rate", bytes(len(file.content("learning_rate"))))


DEFECTS = (
    _defect(
        "moments-missing",
        "The optimizer's moments are not in the checkpoint.",
        stored(EVERY, _without_moments),
        "rank 0's file lacks optimizer state: moments.layer1.weight.param",
    ),
    _defect(
        "moments-zeroed",
        "The optimizer's moments are all zero in the checkpoint.",
        stored(EVERY, _with_moments_of_zero),
        "parameters of rank 0 differ: moments.layer1.weight.param",
    ),
    _defect(
        "moments-stale",
        "The optimizer's moments of rank 0 are of step 4.",
        _with_older_moments,
        "parameters of rank 0 differ: moments.layer1.weight.param",
    ),
    _defect(
        "moment-off-by-one-bit",
        "One moment of one rank is off by one bit.",
        stored(RANK_1, lambda file: file.flip_bit("moments.layer2.bias.param", 8)),
        "1 of",
        "parameters of rank 1 differ: moments.layer2.bias.param",
    ),
    _defect(
        "global-step-reset-in-file",
        "The optimizer's step counter is 0 in the checkpoint.",
        stored(EVERY, lambda file: file.set_number("global_step", 0)),
        "global_step of rank 0 is 6",
        "global_step 0 is stored",
    ),
    _defect(
        "learning-rate-missing-in-file",
        "The schedule of the learning rate is not in the checkpoint.",
        stored(EVERY, lambda file: file.remove("learning_rate")),
        "rank 0's file lacks optimizer state: learning_rate",
    ),
    _defect(
        "learning-rate-of-another-schedule",
        "The checkpoint of rank 0 holds another schedule of the learning rate.",
        stored(RANK_0, _with_another_schedule),
        "parameters of rank 0 differ: learning_rate",
    ),
)
