"""A difference between replicas after a recovery names the kind of the recovery, as its mechanism has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.checks.consistency.check import check
from chaos.evidence.artifacts import Artifacts
from tests.unit.checks.mechanism.test_elastic_rule import PLAN, good
from tests.unit.checks.mechanism.test_rsc_rule import Story

HELD, OTHER = {"weight": "a" * 32}, {"weight": "b" * 32}


def differing() -> Story:
    """All ranks are started again, and rank 2 goes on with another weight than its replicas."""
    story = good()
    for rank in range(4):
        story.add(13.55, "initial", rank, 200 + rank, parameters=OTHER if rank == 2 else HELD)
    return story


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        ("ELASTIC", "after restart 1"),
        ("RSC", "after restart 1"),
        ("UCE", "after online repair 1"),
        ("ARF", "after replacement 1"),
        ("TRE", "after rollback 1"),
    ],
)
def test_a_difference_names_the_kind_of_recovery(tmp_path: Path, mechanism: str, words: str) -> None:
    response = PLAN.response
    recovery = replace(response.recoveries[0], mechanism=mechanism)
    plan = replace(PLAN, response=replace(response, mechanism=mechanism, recoveries=(recovery,)))
    findings = check(plan, differing().history(), Artifacts(tmp_path, None))
    seen = [finding.seen for finding in findings if finding.verdict == "fail"]
    assert seen == [f"ranks 0 and 2 disagree {words} of attempt train: weight"]
