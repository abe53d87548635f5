"""Proofs that a checkpoint, or its record, was damaged, renamed or taken away."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.proof import Case, Proof
from chaos.faults.checkpoints.proof_damage import damage_doubts
from chaos.faults.checkpoints.proof_lost import lost_files_doubts

_DIGESTS = "the digests of the file before and after"


def _damaged(case: Case) -> Iterator[Doubt]:
    yield from damage_doubts(case.plan, case.history, case.fault, case.landing, case.evidence)


def _lost(case: Case) -> Iterator[Doubt]:
    yield from lost_files_doubts(case.fault, case.landing, case.evidence)


DAMAGED = Proof(_DIGESTS, ("file", "step", "before", "after"), _damaged)
RENAMED = Proof(f"{_DIGESTS}, and the name that it has now", ("file", "renamed", "step", "before", "after"), _damaged)
LOST = Proof(
    "the directory of the rank's checkpoints, which is gone, and the files that were taken from it",
    ("directory", "removed"),
    _lost,
)
