"""Defects of a job that is back and hangs in a single step, between two steps that are as fast as before."""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.records import Records, recorded

_SECONDS = 200

_defect = partial(file_defect, base="live-torch-elastic", check="recovery")
_ft = partial(file_defect, base="torchft-kill-group", check="recovery")


def _later(event: str, step: int) -> Mutate:
    """Return a mutation: the last rank records this event of the step, and all that follows, so much later."""

    def change(records: Records) -> None:
        records.delay(records.last(event, step=step)["mono"], _SECONDS * 10**9)

    return recorded(change)


DEFECTS = (
    _defect(
        "elastic-hangs-in-a-step",
        "Some rank hangs in step 9 for 200 s, long after the restart.",
        _later("step.end", 9),
        "no step after the recovery takes longer than",
        " took 200.",
    ),
    _defect(
        "elastic-hangs-between-steps",
        "Some rank waits for its data for 200 s before step 10.",
        _later("step.begin", 10),
        "no step after the recovery takes longer than",
        "from the end of step 9 on",
    ),
    _ft(
        "ft-hangs-in-a-step",
        "All groups hang in step 20 for 200 s, long after the return of the lost one.",
        _later("step.end", 20),
        "no step after the recovery takes longer than",
        " took 200.",
    ),
)
