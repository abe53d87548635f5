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
        "Below the checkpoints is a directory that no search comes to the end of: more may have been saved there.",
        "ttp",
        "checkpoint",
    ),
    _defect(
        "unsearched-checkpoint-to-resume-from",
        "Whether the file that ranks go on from is the newest nobody can say, since not all could be searched.",
        "slices",
        "resume",
    ),
    _defect(
        "unsearched-after-repair",
        "Of a job that was repaired online not all that it has left could be searched.",
        "uce",
        "checkpoint",
    ),
    _defect(
        "unsearched-group-info",
        "Not every group_info.pb can have been found.",
        "slices",
        "consistency",
    ),
    _defect(
        "unsearched-norm-record",
        "There may be another abnormal_global_norm.json than the one that was found.",
        "tre",
        "mechanism",
    ),
    _defect(
        "unsearched-leftovers",
        "An unfinished file may be left where nobody could search.",
        "rsc",
        "hygiene",
    ),
    _defect(
        "unsearched-when-the-run-ended",
        "When the run ended a directory of the job could not be read.",
        "hcce",
        "hygiene",
        "not searched when the run ended: job/closed: Permission denied",
        mutate=recorded(lambda records: records.first("hygiene").update(unsearched=["job/closed: Permission denied"])),
    ),
)
