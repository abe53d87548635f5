"""A script that goes on from an earlier checkpoint has passed the damage over only if the damage was still there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.checks.resume.damage_met import EXPECTED
from chaos.evidence.checkpoints.at_resume import DAMAGE_MET
from chaos.evidence.finding import Verdict
from tests.kit.runs.damaged_run import AFTER, BEFORE, FILE, damaged_run, evidence
from tests.kit.runs.good_run import VICTIM, GoodRun, record
from tests.kit.runs.restored_run import LOSS
from tests.unit.checks.judging import Judge, said


def stated_run(**met: Any) -> GoodRun:
    """The good run with a damaged file, of a script that decides where it goes on; the damage was met as given."""
    run = damaged_run()
    assert run.plan.resume.restore is not None
    run.replan(restore=replace(run.plan.resume.restore, stated=True))
    if met:
        place: dict[str, Any] = {"attempt": "resume", "rank": VICTIM, "fault": LOSS, "file": FILE}
        run.add("harness", record(10.9, DAMAGE_MET, **{**place, **met}))
    return run


def test_damage_that_was_in_its_place_passes_with_the_files_that_were_loaded(judged: Judge) -> None:
    judgement = judged(stated_run(content=AFTER))
    assert judgement.verdict == "pass", [finding for finding in judgement.findings if finding.verdict != "pass"]
    (finding,) = said(judgement, "resume", "pass", EXPECTED)
    assert finding.seen.startswith(f"{FILE} was, and the ranks have loaded checkpoints/rank_0/sliced-1_5.ckpt")


@pytest.mark.parametrize(
    ("met", "text"),
    [
        ({}, f"nobody has looked for rank 2's file {FILE}"),
        ({"content": BEFORE}, f"rank 2's file {FILE} was another than the fault had left"),
        ({"content": "absent"}, f"rank 2's file {FILE} was another than the fault had left"),
        ({"content": None, "problem": "it cannot be read"}, "it cannot be read"),
        ({"content": AFTER, "fault": "another"}, "nobody has looked for rank 2's file"),
        ({"content": AFTER, "attempt": "train"}, "nobody has looked for rank 2's file"),
    ],
)
def test_damage_that_nobody_has_seen_in_its_place_is_unknown(judged: Judge, met: dict[str, Any], text: str) -> None:
    judgement = judged(stated_run(**met))
    assert judgement.verdict == "unknown"
    assert said(judgement, "resume", "unknown", text)


def test_damage_without_evidence_is_not_taken_for_met(judged: Judge) -> None:
    run = stated_run(content=AFTER)
    run.only("fault.landed", fault=LOSS)["evidence"] = []
    assert said(judged(run), "resume", "unknown", "no fault is recorded to have damaged a checkpoint")


def test_evidence_without_a_digest_is_met_by_nothing(judged: Judge) -> None:
    run = stated_run(content=None)
    evidence(run)["after"] = None
    assert said(judged(run), "resume", "unknown", "was another than the fault had left")


@pytest.mark.parametrize("stated", [True, False])
def test_only_a_script_of_the_users_own_is_asked(judged: Judge, stated: bool) -> None:
    """Other jobs say themselves which file they pass over, and their older runs have no such record."""
    run = stated_run()
    assert run.plan.resume.restore is not None
    run.replan(restore=replace(run.plan.resume.restore, stated=stated))
    verdict: Verdict = "unknown" if stated else "pass"
    assert judged(run).verdict == verdict


def loaded_apart(*, damaged: bool) -> GoodRun:
    """Rank 1's file cannot tell its step, so no single step is known; the victim loads its damaged file, or another."""
    run = stated_run(content=AFTER)
    for event in ("load.begin", "load.end"):
        for entry in run.events(event, attempt="resume", rank=1):
            entry["path"] = "elsewhere.ckpt"
        if damaged:
            for entry in run.events(event, attempt="resume", rank=VICTIM):
                entry["path"] = FILE.removeprefix("job/")
    return run


@pytest.mark.parametrize("damaged", [True, False])
def test_the_load_of_a_damaged_file_fails_also_where_no_single_step_is_known(judged: Judge, damaged: bool) -> None:
    judgement = judged(loaded_apart(damaged=damaged))
    assert said(judgement, "resume", "unknown", "the step to resume from is known")
    assert bool(said(judgement, "resume", "fail", f"rank {VICTIM} loaded ")) == damaged
