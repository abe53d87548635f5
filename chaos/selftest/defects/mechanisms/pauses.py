"""Defects of pauses (TSP): too short, of some ranks, at different steps, twice."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from chaos.selftest.calls import never_called
from chaos.selftest.defect import NothingToMutate, file_defect
from chaos.selftest.files import SDK_LOG, line_doubled
from chaos.selftest.records import Records, recorded

_defect = partial(file_defect, check="mechanism")


def _pause_evidence(records: Records) -> dict[str, Any]:
    """Return the evidence of rank 1's pause.

    It names the step: a later one, if a rank had passed the first already.
    """
    (entry_of_rank,) = (entry for entry in records.first("fault.landed")["evidence"] if entry["rank"] == 1)
    evidence: dict[str, Any] = entry_of_rank
    return evidence


def _paused_apart(records: Records) -> None:
    evidence = _pause_evidence(records)
    records.first("pause.enter", rank=1, step=evidence["paused"])["step"] -= 1
    evidence["paused"] -= 1


def _early_end(run_dir: Path) -> None:
    """Let the ranks leave the pause 50 ms before a second has passed since the last of them was stopped."""

    def change(records: Records) -> None:
        last = max(record["mono"] for record in records.all("handler.exit", name="stream_sync"))
        leave = min(record["mono"] for record in records.all("pause.exit", step=_pause_evidence(records)["paused"]))
        early = leave - (last + 950_000_000)
        if early <= 0:
            raise NothingToMutate("the pause was short already")
        records.delay(leave, -early, files="train-")

    recorded(change)(run_dir)


def _trains_in_the_pause(records: Records) -> None:
    next_begin = records.first("step.begin", rank=0, step=_pause_evidence(records)["paused"] + 1)
    early = {key: value for key, value in next_begin.items() if key not in ("mono", "wall")}
    records.insert(records.last("handler.exit", rank=0, name="stream_sync"), **early)
    records.drop([next_begin])


DEFECTS = (
    _defect(
        "pause-at-different-steps",
        "Rank 1 was paused one step earlier than rank 0.",
        recorded(_paused_apart),
        "they were paused after steps",
        base="tsp",
    ),
    _defect(
        "pause-of-one-rank-only",
        "Rank 1 was not paused.",
        never_called("stream_sync", 1),
        "rank 1's own history has no pause",
        base="tsp",
        check="injection",
        verdict="unknown",
    ),
    _defect(
        "pause-too-short-by-a-little",
        "The ranks went on a little before the time was over.",
        _early_end,
        "all of them were paused for 0.9",
        base="tsp",
    ),
    _defect(
        "pause-twice",
        "The SDK's log tells of two pauses.",
        line_doubled(SDK_LOG, "nextState: STATE_OP_PAUSE"),
        "the SDK pauses 1 times",
        "2 pauses in its log",
        base="tsp",
    ),
    _defect(
        "pause-in-which-a-rank-trains",
        "Rank 0 begins its next step while it is paused.",
        recorded(_trains_in_the_pause),
        "while it was paused",
        base="tsp",
    ),
)
