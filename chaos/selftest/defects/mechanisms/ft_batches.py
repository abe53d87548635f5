"""Defects of the data of torchft's replica groups: samples that count twice in a step, and votes that rule it out."""

from __future__ import annotations

from functools import partial

from chaos.selftest.defect import file_defect
from chaos.selftest.records import Records, recorded

_ONE, _OTHER = 0, 2
"""The groups that no fault hits."""

_LATER = 20
"""A step in which all groups train again."""

_APART = "groups that no fault hit train different batches in each step"

_defect = partial(file_defect, base="torchft-kill-group", check="mechanism")


def _shared(records: Records) -> None:
    records.digest(_OTHER, _LATER)["batch"] = records.digest(_ONE, _LATER)["batch"]


def _unrecorded(records: Records) -> None:
    records.digest(_ONE, _LATER)["batch"] = None


def _healed(records: Records) -> None:
    records.first("step.voted", rank=_ONE, step=_LATER)["healed"] = True


DEFECTS = (
    _defect(
        "ft-batch-shared-by-two-groups",
        "Two groups that no fault hit train the same samples in step 20.",
        recorded(_shared),
        _APART,
        "ranks 0 and 2 trained the same batch in step 20",
    ),
    _defect(
        "ft-batch-not-recorded",
        "The batch of a group that trains on is not recorded in step 20.",
        recorded(_unrecorded),
        _APART,
        "the batch of rank 0 in step 20 is not recorded",
        verdict="unknown",
    ),
    _defect(
        "ft-healed-and-counted-by-one-vote",
        "A group that trains on gets its state in step 20, and its own gradients count.",
        recorded(_healed),
        "the participants that torchft counts in a step are the groups that commit it",
        "rank 0 got its state in step 20, and by the same vote its own gradients count",
        verdict="unknown",
    ),
)
