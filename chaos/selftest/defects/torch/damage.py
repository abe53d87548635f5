"""Defects of jobs of PyTorch that are started again beside a damaged checkpoint."""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.records import Records, recorded

_READ = ("load.begin", "load.end", "checkpoint.read")

_defect = partial(file_defect, base="live-torch-damage", check="resume")


def _not_looked(records: Records) -> None:
    records.drop(records.all("checkpoint.damage_met"))


def _saved_anew(records: Records) -> None:
    records.first("checkpoint.damage_met")["content"] = "0" * 64


def _gone(records: Records) -> None:
    records.first("checkpoint.damage_met")["content"] = "absent"


def _reads(old: str, new: str, *ranks: int) -> Mutate:
    """Return a mutation: these ranks of the second launch read another file than they did."""

    def change(records: Records) -> None:
        for record in records.all(attempt="resume"):
            if record["event"] in _READ and record["rank"] in ranks:
                record["path"] = record["path"].replace(old, new)

    return recorded(change)


DEFECTS = (
    _defect(
        "torch-damage-not-looked-for",
        "Nobody has looked whether the damaged file lay there when the job was started again.",
        recorded(_not_looked),
        "nobody has looked for rank 1's file",
        verdict="unknown",
    ),
    _defect(
        "torch-damage-saved-anew",
        "The damaged file had another content when the job was started again.",
        recorded(_saved_anew),
        "was another than the fault had left",
        verdict="unknown",
    ),
    _defect(
        "torch-damage-taken-away",
        "The damaged file had been removed when the job was started again, so that the script could pass it over.",
        recorded(_gone),
        "was another than the fault had left",
        verdict="unknown",
    ),
    _defect(
        "torch-damage-loaded",
        "The script skips its comparison of checksums: rank 1 loads the damaged file.",
        _reads("step-4.pt", "step-6.pt", 1),
        "no rank loads a checkpoint that a fault has damaged",
        "rank 1 loaded job/checkpoints/rank_1/step-6.pt",
    ),
    _defect(
        "torch-damage-met-by-one-rank-only",
        "Rank 0 goes on from its own newest file, and rank 1 from an older one.",
        _reads("step-4.pt", "step-6.pt", 0),
        "the step to resume from is known",
        "rank 0 loaded job/checkpoints/rank_0/step-6.pt (step 6)",
        verdict="unknown",
    ),
    _defect(
        "torch-damage-goes-back-too-far",
        "Both ranks pass the sound checkpoints of step 4 over, and load those of step 2.",
        _reads("step-4.pt", "step-2.pt", 0, 1),
        "training goes on at step 5",
        "step 2 was saved, so the next is step 3",
    ),
)
