"""Defects of searches: part of what a job has left cannot be searched, so nothing shows that it holds no leftover."""

from __future__ import annotations

from chaos.selftest.defect import Defect, Mutate
from chaos.selftest.files import buried
from chaos.selftest.records import recorded

_SEARCHED = "all that the job has left can be searched"
_JOB = "not searched: job: has more than 256 levels of directories below"


def _defect(name: str, what: str, base: str, check: str, *reason: str, mutate: Mutate | None = None) -> Defect:
    mutate = mutate or buried("job/checkpoints")
    return Defect(name, what, "files", base, check, reason or (_SEARCHED, _JOB), "unknown", mutate)


DEFECTS = (
    _defect(
        "unsearched-checkpoints",
        "A directory below the checkpoints is too deep for any search: more files may have been saved there.",
        "ttp",
        "checkpoint",
    ),
    _defect(
        "unsearched-checkpoint-to-resume-from",
        "The ranks' file may not be the newest, since not every directory could be searched.",
        "slices",
        "resume",
    ),
    _defect(
        "unsearched-after-repair",
        "The leftovers of a job that was repaired online could not all be searched.",
        "uce",
        "checkpoint",
    ),
    _defect(
        "unsearched-group-info",
        "Some group_info.pb may not have been found.",
        "slices",
        "consistency",
    ),
    _defect(
        "unsearched-norm-record",
        "There may be a second abnormal_global_norm.json that was not found.",
        "tre",
        "mechanism",
    ),
    _defect(
        "unsearched-leftovers",
        "An unfinished file may be left in a directory that could not be searched.",
        "rsc",
        "hygiene",
    ),
    _defect(
        "unsearched-when-the-run-ended",
        "At the end of the run a directory of the job could not be read.",
        "hcce",
        "hygiene",
        "not searched when the run ended: job/closed: Permission denied",
        mutate=recorded(lambda records: records.first("hygiene").update(unsearched=["job/closed: Permission denied"])),
    ),
)
