"""Defects of the end-of-life checkpoint as a file: its step, its names, its owner, its completeness."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from chaos.selftest.ckpt_file import CkptFile, stored
from chaos.selftest.defect import Defect, Mutate, file_defect
from chaos.selftest.files import copied, moved, removed, rewritten

SAVED = 6
DIRECTORY = f"job/checkpoints/ttp_saved_checkpoints-step_{SAVED}"
EVERY = f"ttp_saved_checkpoints-step_{SAVED}/rank_*/*.ckpt"
RANK_0 = f"ttp_saved_checkpoints-step_{SAVED}/rank_0/*.ckpt"
RANK_1 = f"ttp_saved_checkpoints-step_{SAVED}/rank_1/*.ckpt"


_defect = partial(file_defect, base="ttp", check="checkpoint")


def _step(number: int) -> Mutate:
    def change(file: CkptFile) -> None:
        file.set_number("step_num", number)
        file.set_number("global_step", number)

    return stored(EVERY, change)


def _values_of_step_4(run_dir: Path) -> None:
    """Replace all but the values that the save appends by those of the previous periodic checkpoint."""
    for rank in (0, 1):
        (older,) = (run_dir / "job/checkpoints").glob(f"rank_{rank}/*-1_4.ckpt")
        _take_all(run_dir, CkptFile(older), f"ttp_saved*/rank_{rank}/*.ckpt")


def _slices_of_rank_0(run_dir: Path) -> None:
    (path,) = (run_dir / "job/checkpoints").glob(RANK_0)
    _take_all(run_dir, CkptFile(path), RANK_1)


def _take_all(run_dir: Path, source: CkptFile, pattern: str) -> None:
    tags = [entry.tag for entry in source.entries if entry.tag != "cur_rank"]
    stored(pattern, lambda file: file.take(tags, source))(run_dir)


def _cut_between_records(file: CkptFile) -> None:
    del file.entries[-5:]


DEFECTS = (
    _defect(
        "checkpoint-of-step-before",
        "The checkpoint that is named step 6 holds step 5.",
        _step(SAVED - 1),
        "step_num of rank 0 is 6",
        "step_num 5 is stored",
    ),
    _defect(
        "checkpoint-of-step-after",
        "The checkpoint that is named step 6 holds step 7.",
        _step(SAVED + 1),
        "step_num of rank 0 is 6",
        "step_num 7 is stored",
    ),
    _defect(
        "checkpoint-with-values-of-older-step",
        "The checkpoint says step 6 and holds the weights and the optimizer of step 4.",
        _values_of_step_4,
        "equals what the rank held after the saved step",
        "parameters of rank 0 differ",
        "layer1.weight.param",
    ),
    _defect(
        "checkpoint-directory-of-step-after",
        "The checkpoint holds step 6, and its directory is named step 7.",
        moved(DIRECTORY, "job/checkpoints/ttp_saved_checkpoints-step_7"),
        "the directory's step is the stored one, 6",
        "it is 7",
    ),
    _defect(
        "checkpoint-file-of-step-before",
        "The file of rank 0 is named as the file of step 5.",
        moved(f"{DIRECTORY}/rank_0/*.ckpt", f"{DIRECTORY}/rank_0/ttp_rank_0-1_5.ckpt"),
        "rank 0's file is named 1_5",
    ),
    _defect(
        "checkpoint-content-of-other-rank",
        "The file of rank 1 says that rank 3 has saved it.",
        stored(RANK_1, lambda file: file.set_number("cur_rank", 3)),
        "the content is rank 1's",
        "cur_rank 3 is stored",
    ),
    _defect(
        "checkpoint-slices-of-other-group",
        "Rank 1 has saved the slices of rank 0, which is of another replica group.",
        _slices_of_rank_0,
        "equals what the rank held after the saved step",
        "parameters of rank 1 differ",
    ),
    _defect(
        "saver-not-entitled",
        "Rank 2, which was killed, has saved.",
        copied(f"{DIRECTORY}/rank_0/*.ckpt", f"{DIRECTORY}/rank_2/ttp_rank_2-2_1.ckpt"),
        "rank 2 saved without being entitled to",
    ),
    _defect(
        "saver-beside-another",
        "Two ranks of one replica group have saved.",
        copied(f"{DIRECTORY}/rank_1/*.ckpt", f"{DIRECTORY}/rank_3/ttp_rank_3-2_1.ckpt"),
        "one checkpoint of replica group [1, 3]",
        "2 files",
    ),
    _defect(
        "replica-group-missing",
        "No rank of one replica group has saved.",
        removed(f"{DIRECTORY}/rank_1"),
        "no checkpoint of replica group [1, 3]",
    ),
    _defect(
        "tmp-never-renamed",
        "The directory of the checkpoint still has its temporary name.",
        moved(DIRECTORY, f"{DIRECTORY}_tmp"),
        "temporary directories are renamed",
        "ttp_saved_checkpoints-step_6_tmp is left",
    ),
    _defect(
        "tmp-left-beside",
        "The directory was copied to its final name, and the temporary directory is left.",
        copied(DIRECTORY, f"{DIRECTORY}_tmp"),
        "ttp_saved_checkpoints-step_6_tmp is left",
    ),
    _defect(
        "checkpoint-truncated",
        "The file of rank 0 was cut in half.",
        rewritten(f"{DIRECTORY}/rank_0/*.ckpt", lambda content: content[: len(content) // 2]),
        "every file loads",
        "rank 0's file is damaged",
    ),
    _defect(
        "checkpoint-truncated-but-loads",
        "The file of rank 0 was cut where a record ends, so that it still loads.",
        stored(RANK_0, _cut_between_records),
        "rank 0's file lacks epoch_num, step_num, cur_rank, batch_num",
    ),
    _defect(
        "checkpoint-empty",
        "The file of rank 1 has no bytes.",
        rewritten(f"{DIRECTORY}/rank_1/*.ckpt", lambda content: b""),
        "rank 1's file is damaged",
        "empty",
    ),
    _defect(
        "checkpoint-bit-flipped-but-loads",
        "One bit of a weight of rank 0 is flipped in the file, which still loads.",
        stored(RANK_0, lambda file: file.flip_bit("layer3.weight.param", 70_001)),
        "1 of",
        "parameters of rank 0 differ: layer3.weight.param",
    ),
    _defect(
        "checkpoint-weight-not-finite",
        "One weight of rank 1 is NaN.",
        stored(RANK_1, lambda file: file.set_float("layer3.weight.param", 5, float("nan"))),
        "not finite in rank 1's file: layer3.weight.param",
    ),
    _defect(
        "checkpoint-weight-missing",
        "One weight is not in the file of rank 0.",
        stored(RANK_0, lambda file: file.remove("layer3.weight.param")),
        "rank 0's file lacks parameters: layer3.weight.param",
    ),
    _defect(
        "checkpoint-of-half-an-update",
        "The flag in the file of rank 1 says that it was saved in the middle of an update.",
        stored(RANK_1, lambda file: file.set_number("tft_g_one_flag", 0)),
        "tft_g_one_flag is 0 in rank 1's file",
        "in the middle of an update",
    ),
    Defect(
        "checkpoint-without-its-flag",
        "The file of rank 0 does not say whether it was saved in the middle of an update.",
        "files",
        "ttp",
        "checkpoint",
        ("rank 0's file lacks tft_g_one_flag",),
        "unknown",
        stored(RANK_0, lambda file: file.remove("tft_g_one_flag")),
    ),
)
