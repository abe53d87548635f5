"""Defects around a damaged checkpoint: a job that goes on from it, and a harness that has not damaged it."""

from __future__ import annotations

from chaos.selftest.defect import Defect
from chaos.selftest.records import Record, Records, recorded

BASE = "live-plain-damage"


def _evidence(records: Records) -> Record:
    record: Record = records.last("fault.landed")["evidence"][0]
    return record


def _unchanged(records: Records) -> None:
    shown = _evidence(records)
    shown["after"] = shown["before"]


DEFECTS = (
    Defect(
        name="checksum-not-looked-at",
        what="The resumed job loads a checkpoint without looking at its checksum, and trains on with a flipped bit.",
        layer="job",
        base=BASE,
        check="resume",
        reason=("rank 0 loaded rank 0's file, the plan shows that of rank 1",),
        inside="chaos.selftest.live.damage:checksum_not_looked_at",
    ),
    Defect(
        name="anew-when-a-file-is-damaged",
        what="The resumed job finds a damaged checkpoint and trains from the start, without a word.",
        layer="job",
        base=BASE,
        check="resume",
        reason=("training goes on at step 5", "rank 0 began with step 1"),
        inside="chaos.selftest.live.damage:anew",
    ),
    Defect(
        name="older-step-when-a-file-is-damaged",
        what="The resumed job finds a damaged checkpoint and goes back further than it must.",
        layer="job",
        base=BASE,
        check="resume",
        reason=("training goes on at step 5", "step 2 was saved, so the next is step 3"),
        inside="chaos.selftest.live.damage:older_step",
    ),
    Defect(
        name="checkpoint-not-damaged",
        what="The fault that flips a bit has left the file as it was.",
        layer="files",
        base=BASE,
        check="injection",
        reason=("rank 0's file rank_0/plain-1_4.ckpt has the same content as before",),
        verdict="unknown",
        mutate=recorded(_unchanged),
    ),
    Defect(
        name="another-step-damaged",
        what="The fault has hit the file of an older step, from which no rank goes on.",
        layer="files",
        base=BASE,
        check="injection",
        reason=("rank 0's file of step 2 was hit, not that of step 4",),
        verdict="unknown",
        mutate=recorded(lambda records: _evidence(records).update(step=2)),
    ),
    Defect(
        name="file-of-nobody-damaged",
        what="The fault has hit a file that its rank has not saved.",
        layer="files",
        base=BASE,
        check="injection",
        reason=("rank 0's own history has no save of rank_0/other-1_4.ckpt",),
        verdict="unknown",
        mutate=recorded(lambda records: _evidence(records).update(file="rank_0/other-1_4.ckpt")),
    ),
)
