"""Defects of the record itself: two witnesses of how a process ended that contradict each other."""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import Mutate, file_defect
from chaos.selftest.defects.torch.restart import old_end
from chaos.selftest.records import Records, recorded

_KILLED = 1

_doubt = partial(file_defect, base="live-torch-elastic", check="history", verdict="unknown")


def _collected(**status: object) -> Mutate:
    """Return a mutation: torchrun collected another end of rank 0's last process than the harness recorded."""

    def change(records: Records) -> None:
        pid = records.last("rank.exit", rank=0)["pid"]
        records.last("child.exit", child_pid=pid).update(status)

    return recorded(change)


def _by_both(records: Records) -> None:
    old_end(records, _KILLED).update(code=1)


DEFECTS = (
    _doubt(
        "elastic-ends-contradict",
        "torchrun collected exit code 1 of rank 0's last process, and the harness recorded 0.",
        _collected(code=1),
        "launcher and harness record one end of each process of a rank",
        "exit code 1 by the launcher, exit code 0 by the harness",
    ),
    _doubt(
        "elastic-end-of-another-process",
        "torchrun collected the end of a process with another start time under the PID of rank 0.",
        _collected(start_time=5),
        "has another start time by the launcher than by the harness",
    ),
    _doubt(
        "elastic-end-by-signal-and-code",
        "The killed process ended by a signal, and with an exit code.",
        recorded(_by_both),
        "a process cannot end by both",
    ),
)
