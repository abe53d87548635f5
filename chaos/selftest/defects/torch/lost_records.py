"""Defects of the record itself: a process that lacks all records of a kind, which its other records show."""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.records import Records, recorded

_doubt = partial(file_defect, base="live-torch-elastic", check="history", verdict="unknown")


def _lost(event: str, rank: int, *, last: bool) -> Mutate:
    """Return a mutation: the rank's last process, or its first one, has none of its events of this name."""

    def change(records: Records) -> None:
        pid = (records.last if last else records.first)("agent.start", rank=rank)["pid"]
        records.drop(records.all(event, rank=rank, pid=pid))

    return recorded(change)


DEFECTS = (
    _doubt(
        "elastic-step-ends-of-a-process-lost",
        "No end of a step of rank 0's new process is recorded, and the states after its steps are.",
        _lost("step.end", 0, last=True),
        "no process lacks all records that its other records show",
        "and the end of no step",
    ),
    _doubt(
        "elastic-step-beginnings-of-a-process-lost",
        "No beginning of a step of rank 2's first process is recorded, and the ends of its steps are.",
        _lost("step.begin", 2, last=False),
        "and the beginning of no step",
    ),
    _doubt(
        "ft-step-ends-of-a-process-lost",
        "No end of a step of the returned group is recorded, and the states after its steps are.",
        _lost("step.end", 1, last=True),
        "no process lacks all records that its other records show",
        "and the end of no step",
        base="torchft-kill-group",
    ),
)
