"""Defects of periodic checkpoints, loaded or not: their contents, and whether saving goes on."""

from __future__ import annotations

from functools import partial

from chaos.selftest.ckpt_file import CkptFile, stored
from chaos.selftest.defect import file_defect
from chaos.selftest.files import removed, rewritten
from chaos.selftest.records import Records, recorded

_defect = partial(file_defect, base="tre", check="checkpoint")


def _without_moments(file: CkptFile) -> None:
    for name in file.moments():
        file.remove(name)


def _only_the_step(file: CkptFile) -> None:
    for name in [entry.tag for entry in file.entries if entry.tag != "global_step"]:
        file.remove(name)


def _no_save_after(records: Records) -> None:
    """Remove every save from the rollback on."""
    for begin in records.all("train.begin", initial_step=6):
        process_records = records.all(rank=begin["rank"], pid=begin["pid"])
        late = [
            record
            for record in process_records
            if record["event"].startswith("checkpoint.") and record["mono"] > begin["mono"]
        ]
        records.drop([record for record in late if record.get("kind") == "periodic"])


DEFECTS = (
    _defect(
        "periodic-checkpoints-without-moments",
        "No periodic checkpoint of rank 1 holds the optimizer's moments.",
        stored("rank_1/*.ckpt", _without_moments),
        "every periodic checkpoint holds",
        "lacks optimizer state: moments.",
    ),
    _defect(
        "periodic-checkpoint-with-its-step-only",
        "The periodic checkpoints of rank 1 hold the number of their step and nothing else.",
        stored("rank_1/*.ckpt", _only_the_step),
        "every periodic checkpoint holds",
        "lacks parameters: ",
    ),
    _defect(
        "periodic-checkpoint-cut-off",
        "The periodic checkpoints of rank 1 were finished and cannot be read.",
        rewritten("job/checkpoints/rank_1/*.ckpt", lambda content: content[: len(content) // 2]),
        "every periodic checkpoint holds",
        "rank 1's file is damaged",
    ),
    _defect(
        "no-checkpoint-after-rollback",
        "After the rollback no rank saves any checkpoint.",
        recorded(_no_save_after),
        "every rank saves a periodic checkpoint at least every 3 steps",
        "rank 0 has trained up to step 9, and saved none since step 6",
    ),
    _defect(
        "newest-checkpoint-gone",
        "The last save of rank 1 is not there, and the next fault would need it.",
        removed("job/checkpoints/rank_1/mnist-2_4.ckpt"),
        "the last checkpoint of each rank is there",
        "rank 1 has saved job/checkpoints/rank_1/mnist-2_4.ckpt after step 10, which is not there",
    ),
    _defect(
        "newest-checkpoints-gone-after-resume",
        "No save of the resumed job is left.",
        removed("job/checkpoints/rank_*/sliced_1-*.ckpt"),
        "rank 0 has saved job/checkpoints/rank_0/sliced_1-2_4.ckpt after step 10, which is not there",
        base="ttp",
    ),
    _defect(
        "loaded-checkpoint-without-moments",
        "Rank 1 goes on from a file without moments, and has moments all the same.",
        stored("rank_1/sliced-1_6.ckpt", _without_moments),
        "goes on with parameters that its file does not hold: moments.",
        base="slices",
        check="resume",
    ),
)
