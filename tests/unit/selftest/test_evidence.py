"""Evidence is taken away from a good run: what passes all the same is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.checks.artifacts import Artifacts
from chaos.checks.finding import Finding
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.selftest import evidence
from chaos.selftest.evidence import EXCUSED, EXCUSED_OF_BASELINE, Removal, sweep
from tests.unit.good_run import good_run


@pytest.fixture(scope="module")
def removals(tmp_path_factory: pytest.TempPathFactory) -> list[Removal]:
    place = tmp_path_factory.mktemp("evidence")
    return list(sweep("good", good_run().write(place / "run"), place / "copies"))


def test_nothing_passes_without_its_evidence(removals: list[Removal]) -> None:
    assert [one.to_json() for one in removals if not one.held] == []


@pytest.mark.parametrize(
    "name",
    [
        "fault.landed",
        "rank.exit of rank 2 in attempt train",
        "digest of rank 1 in attempt resume",
        "the baseline's digest of rank 3 in attempt train",
        "the history of the ranks",
        "the history of the harness",
        "the baseline",
        "the end-of-life checkpoints",
        "the SDK's log",
        "the undo ledger",
        "history/resume-rank_2-2002.jsonl",
    ],
)
def test_what_the_checks_rest_on_is_taken_away(removals: list[Removal], name: str) -> None:
    (found, *_) = (one for one in removals if one.evidence == name)
    assert (found.green, found.excuse) == ((), "")


def test_what_another_piece_of_evidence_tells_too_is_excused_by_name(removals: list[Removal]) -> None:
    excused = [one for one in removals if one.green and one.excuse]
    names = {name for name, _ in (*EXCUSED, *EXCUSED_OF_BASELINE)}
    assert {one.evidence.removeprefix("the baseline's ").split()[0] for one in excused} <= names
    assert any(one.evidence.startswith("launcher.found") for one in excused)


def test_a_check_that_passes_with_nothing_to_look_at_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
        bad = [one for one in history.select("rank.exit", attempt="resume") if one.data.get("code") != 0]
        return [Finding("careless", "fail" if bad else "pass", "all end well", f"{len(bad)} did not")]

    monkeypatch.setattr(evidence, "BUILT_IN", {"careless": careless})
    run = good_run().write(tmp_path / "run")
    green = [one.evidence for one in sweep("good", run, tmp_path / "copies") if not one.held]
    assert "rank.exit of rank 2 in attempt resume" in green
