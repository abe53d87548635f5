"""Defects of files of ``torch.save``: damaged, of another step, without a part of the state."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.files import copied, removed, rewritten
from chaos.selftest.records import chain
from chaos.selftest.torch_file import MOMENTS, STATE, STEPS, TorchFile, slot, torch_stored, weight

_NEWEST = "rank_1/step-10.pt"
_LOADED = "rank_1/step-4.pt"


_defect = partial(file_defect, base="live-torch-elastic", check="checkpoint")


def _of_older_step(target: str, older: str, numbers: Iterable[int]) -> Mutate:
    """Return a mutation: these values in a file are those of an older file; its number of the step is its own."""

    def mutate(run_dir: Path) -> None:
        old = TorchFile(run_dir / "job/checkpoints" / older)
        torch_stored(target, lambda file: file.take(numbers, old))(run_dir)

    return mutate


def _cleared(numbers: tuple[int, ...]) -> Mutate:
    """Return a mutation: these values are zero in the newest file of rank 1."""

    def change(file: TorchFile) -> None:
        for number in numbers:
            file.clear(number)

    return torch_stored(_NEWEST, change)


def _flipped_unseen(content: bytes) -> bytes:
    """Return the file with a bit of a weight changed, and the CRC as it was."""
    at = content.index(b"data/0") + 64
    at = content.index(b"ZZ", at) + 64  # behind the padding, in the values
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


DEFECTS = (
    _defect(
        "torch-file-of-older-step",
        "The newest checkpoint of rank 1 says step 10. Weights and optimizer are of step 8.",
        _of_older_step(_NEWEST, "rank_1/step-8.pt", STATE),
        "16 of 16 parameters in rank 1's file of step 10 differ",
    ),
    _defect(
        "torch-moments-of-older-step",
        "The newest checkpoint of rank 1 holds the weights of step 10 and the moments of step 8.",
        _of_older_step(_NEWEST, "rank_1/step-8.pt", MOMENTS),
        "8 of 16 parameters in rank 1's file of step 10 differ: optimizer.exp_avg.0",
    ),
    _defect(
        "torch-one-shard-stale",
        "Rank 1 kept its file of step 8 under the name of step 10, as after a copy that failed.",
        chain(
            removed(f"job/checkpoints/{_NEWEST}"),
            copied("job/checkpoints/rank_1/step-8.pt", f"job/checkpoints/{_NEWEST}"),
        ),
        "rank 1's file holds step 8, and by its record the rank has saved step 10",
    ),
    _defect(
        "torch-step-number-older",
        "The newest checkpoint of rank 1 holds all of step 10, and says step 8.",
        torch_stored(_NEWEST, lambda file: file.set_step(8)),
        "the script's own step is not the same in the files of step 10: ",
        "rank 1: 8",
    ),
    _defect(
        "torch-file-cut-off",
        "The newest checkpoint of rank 1 was cut in half.",
        rewritten(f"job/checkpoints/{_NEWEST}", lambda content: content[: len(content) // 2]),
        "rank 1's file is damaged: the zip archive has no end",
    ),
    _defect(
        "torch-file-empty",
        "The newest checkpoint of rank 1 has no bytes.",
        rewritten(f"job/checkpoints/{_NEWEST}", lambda _: b""),
        "rank 1's file is damaged: the file is empty",
    ),
    _defect(
        "torch-bit-flipped",
        "One bit of a weight is flipped in the newest file of rank 1. Only the CRC shows it, which torch never reads.",
        rewritten(f"job/checkpoints/{_NEWEST}", _flipped_unseen),
        "rank 1's file is damaged: the stored CRC of",
    ),
    _defect(
        "torch-bit-flipped-before-the-save",
        "One bit of a weight was flipped before rank 1 wrote its newest checkpoint, so that the CRC is right.",
        torch_stored(_NEWEST, lambda file: file.flip_bit(weight(2), 77)),
        "1 of 16 parameters in rank 1's file of step 10 differ: 3.weight",
    ),
    _defect(
        "torch-weight-not-finite",
        "One weight of the newest checkpoint of rank 1 is not a number.",
        torch_stored(
            _NEWEST, lambda file: file.set_content(weight(1), b"\x00\x00\xc0\x7f" + file.content(weight(1))[4:])
        ),
        "1 of 16 parameters in rank 1's file of step 10 differ: 0.bias",
    ),
    _defect(
        "torch-values-missing",
        "The values of a weight are not in the newest checkpoint of rank 1.",
        torch_stored(_NEWEST, lambda file: file.remove(weight(0))),
        "rank 1's file is damaged: tensor '0.weight' is in storage '0', which is missing",
    ),
    _defect(
        "torch-moments-zero",
        "The moments in the newest checkpoint of rank 1 are all zero.",
        _cleared(MOMENTS),
        "8 of 16 parameters in rank 1's file of step 10 differ: optimizer.exp_avg.0",
    ),
    _defect(
        "torch-step-counter-zero",
        "AdamW's step counters in the newest checkpoint of rank 1 are zero.",
        _cleared(STEPS),
        "4 of 16 parameters in rank 1's file of step 10 differ: optimizer.step.0",
    ),
    _defect(
        "torch-moment-off-by-a-bit",
        "One moment of rank 1 is off by its last bit.",
        torch_stored(_NEWEST, lambda file: file.flip_bit(slot("exp_avg_sq", 3), 0)),
        "1 of 16 parameters in rank 1's file of step 10 differ: optimizer.exp_avg_sq.3",
    ),
    _defect(
        "torch-without-moments",
        "No checkpoint of rank 1 holds the first moments.",
        torch_stored("rank_1/*.pt", lambda file: file.rename("exp_avg")),
        "rank 1's file of step 10 lacks optimizer state: optimizer.exp_avg.0",
    ),
    _defect(
        "torch-without-optimizer",
        "No checkpoint of rank 1 holds the optimizer.",
        torch_stored("rank_1/*.pt", lambda file: file.rename("state")),
        "rank 1's file lacks optimizer state: optimizer.exp_avg.0",
    ),
    _defect(
        "torch-newest-gone",
        "The last save of rank 1 is not there, and the next fault would need it.",
        removed(f"job/checkpoints/{_NEWEST}"),
        "rank 1 has saved job/checkpoints/rank_1/step-10.pt after step 10, which is not there",
    ),
    _defect(
        "torch-unfinished-left",
        "An unfinished file of rank 1 is left beside its checkpoints.",
        copied("job/checkpoints/rank_1/step-10.pt", "job/checkpoints/rank_1/step-12.tmp"),
        "unfinished files: job/checkpoints/rank_1/step-12.tmp",
        check="hygiene",
    ),
    _defect(
        "torch-loaded-bit-flipped",
        "One bit of a weight is flipped in the file from which rank 1 went on.",
        torch_stored(_LOADED, lambda file: file.flip_bit(weight(0), 40)),
        "1 of 16 parameters in rank 1's file of step 4 differ: 0.weight",
    ),
    _defect(
        "torch-loaded-without-moments",
        "Rank 1 went on from a file without moments, and has moments all the same.",
        torch_stored(_LOADED, lambda file: file.rename("exp_avg")),
        "rank 1's file of step 4 lacks optimizer state: optimizer.exp_avg.0",
    ),
    _defect(
        "torch-loaded-file-of-older-step",
        "The file from which rank 1 went on says step 4 and holds the state of step 2.",
        _of_older_step(_LOADED, "rank_1/step-2.pt", STATE),
        "rank 1's file holds step 2, and by its record the rank has saved step 4",
        base="live-torch-resume",
    ),
)
