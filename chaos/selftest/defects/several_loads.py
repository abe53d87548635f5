"""Defects of a resumed job whose state is not that of the newest checkpoint, of several that it may have read."""

from __future__ import annotations

from chaos.selftest.defect import Defect, ExpectedVerdict, Mutate
from chaos.selftest.records import Record, Records, recorded

OLDER, NEWEST = 3, 6
RANKS = 4


def _defect(name: str, what: str, mutate: Mutate, *reason: str, verdict: ExpectedVerdict = "fail") -> Defect:
    return Defect(name, what, "files", "slices", "resume", reason, verdict, mutate)


def _looks_into_older(records: Records, rank: int) -> Record:
    """Let a rank read its older file too, before the newest one. Return the record of its state."""
    ends = records.all("load.end", attempt="resume", rank=rank)
    path = ends[-1]["path"].replace(f"-1_{NEWEST}.", f"-1_{OLDER}.")
    begun = records.insert(ends[-1], event="load.begin", path=path)
    records.insert(begun, event="load.end", path=path, parameters=ends[-1]["parameters"])
    return records.first("initial", attempt="resume", rank=rank)


def _goes_on_from_older(records: Records) -> None:
    for rank in range(RANKS):
        _looks_into_older(records, rank)["parameters"] = records.digest(rank, OLDER)["parameters"]


def _one_group_goes_on_from_older(records: Records) -> None:
    for rank in (1, 3):
        _looks_into_older(records, rank)["parameters"] = records.digest(rank, OLDER)["parameters"]


def _takes_older_moments(records: Records) -> None:
    parameters = _looks_into_older(records, 1)["parameters"]
    older = records.digest(1, OLDER)["parameters"]
    parameters.update({name: value for name, value in older.items() if name.startswith("moments.")})


def _goes_on_from_neither(records: Records) -> None:
    initial = _looks_into_older(records, 1)
    initial["parameters"] = dict.fromkeys(initial["parameters"], "0" * 32)


def _counts_newer_than_its_state(records: Records) -> None:
    parameters = records.first("initial", attempt="resume", rank=1)["parameters"]
    older = records.digest(1, OLDER)["parameters"]
    parameters.update({name: value for name, value in older.items() if name != "global_step"})


DEFECTS = (
    _defect(
        "older-of-two-files",
        "Every rank reads the checkpoints of steps 3 and 6, and goes on with the state of step 3.",
        recorded(_goes_on_from_older),
        f"training goes on at step {NEWEST + 1}",
        f"step {OLDER} was saved, so the next is step {OLDER + 1}",
    ),
    _defect(
        "one-group-from-an-older-step",
        "Ranks 1 and 3, which hold the same slices, go on with the state of step 3, the others with that of step 6.",
        recorded(_one_group_goes_on_from_older),
        "all ranks go on from one step",
        f"rank 1 held the checkpoint of step {OLDER}, rank 0 that of step {NEWEST}",
    ),
    _defect(
        "moments-of-the-older-of-two-files",
        "Rank 1 reads two checkpoints, and goes on with the weights of one and the moments of the other.",
        recorded(_takes_older_moments),
        "each rank goes on with the weights and optimizer state of the file that it loaded",
        "parameters of rank 1 are not the file's: moments.",
    ),
    _defect(
        "older-state-under-a-newer-counter",
        "Rank 1 counts step 6 and holds the state of step 3.",
        recorded(_counts_newer_than_its_state),
        "each rank goes on with the weights of the step that it counts",
        f"rank 1 holds the weights of step {OLDER}, its counter says {NEWEST}; it loaded ",
    ),
    _defect(
        "neither-of-two-files",
        "Rank 1 reads two checkpoints, and goes on with a state that is in neither.",
        recorded(_goes_on_from_neither),
        "the step to resume from is known",
        "rank 1 loaded ",
        verdict="unknown",
    ),
)
