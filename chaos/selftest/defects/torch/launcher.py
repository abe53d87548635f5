"""Defects of the launcher's own record: it had not started the ranks before, or another process's end is its own."""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import file_defect
from chaos.selftest.records import recorded

_defect = partial(file_defect, base="live-torch-elastic", check="mechanism")
_ft = partial(file_defect, base="torchft-kill-group", check="mechanism")

_ANOTHER = 77

_end = recorded(lambda records: records.last("launcher.exit", role="launcher").update(pid=_ANOTHER))
_parent = recorded(lambda records: records.first("rank.found", rank=0).update(ppid=_ANOTHER))

DEFECTS = (
    _defect(
        "elastic-end-of-another-launcher",
        "The end that is recorded of torchrun is that of another process.",
        _end,
        "the end that is recorded is that of process 77, and the launcher was process",
        verdict="unknown",
    ),
    _defect(
        "elastic-started-by-another-launcher",
        "Rank 0's process before the restart was a child of another launcher.",
        _parent,
        "was a child of process 77, not of launcher",
    ),
    _ft(
        "ft-end-of-another-launcher",
        "The end that is recorded of the groups' launcher is that of another process.",
        _end,
        "the end that is recorded is that of process 77, and the launcher was process",
        verdict="unknown",
    ),
    _ft(
        "ft-group-of-another-launcher",
        "A group that trains on is a child of another launcher.",
        _parent,
        "was a child of process 77, not of launcher",
    ),
)
