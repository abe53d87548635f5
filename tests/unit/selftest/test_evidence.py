"""Evidence is taken away from a good run: what passes all the same is told."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.finding import Finding
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.selftest import evidence
from chaos.selftest.allowed_gaps import ALLOWED_GAPS, OF_BASELINE, gap_reason
from chaos.selftest.catalogue import catalogue
from chaos.selftest.defect import FILES
from chaos.selftest.evidence import Removal, stale, sweep
from chaos.selftest.session import Result
from chaos.selftest.table import print_selftest
from tests.kit.hosts.two_hosts import Host, on_hosts
from tests.kit.runs.good_run import good_run

pytestmark = pytest.mark.processes

BASE = "made"
"""The good run of the unit tests: a kind of its own."""

EXCUSES = {
    "another event tells it": {
        "checkpoint.begin in attempt train": BASE,
        "checkpoint.end in attempt train": BASE,
        "handler.enter of rank 3 in attempt train": BASE,
        "initial in attempt train": BASE,
        "launcher.exit in attempt train": BASE,
        "launcher.found in attempt train": BASE,
        "launcher.found in attempt resume": BASE,
        "train.begin in attempt train": BASE,
        "writer.start": BASE,
        "writer.start in attempt train": BASE,
        "writer.start in attempt resume": BASE,
    },
    "the run itself tells it": {
        f"{OF_BASELINE}initial in attempt train": BASE,
        f"{OF_BASELINE}step.begin in attempt train": BASE,
        f"{OF_BASELINE}writer.start": BASE,
        f"{OF_BASELINE}writer.start in attempt train": BASE,
    },
}


@pytest.fixture(scope="module")
def removals(tmp_path_factory: pytest.TempPathFactory) -> list[Removal]:
    place = tmp_path_factory.mktemp("evidence")
    return list(sweep(BASE, good_run().write(place / "run"), place / "copies", EXCUSES))


def test_nothing_passes_without_its_evidence_but_what_is_excused(removals: list[Removal]) -> None:
    assert [removal.to_json() for removal in removals if not removal.held] == []
    assert stale(removals, EXCUSES) == ()


RESTED_ON = (
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
)
"""Evidence that the checks of a good run rest on."""


def test_what_the_checks_rest_on_is_taken_away(removals: list[Removal]) -> None:
    for name in RESTED_ON:
        (removal, *_) = (removal for removal in removals if removal.evidence == name)
        assert (removal.green, removal.excuse) == ((), ""), name


@pytest.mark.nightly
def test_an_excuse_of_one_kind_of_run_hides_nothing_in_another(tmp_path: Path) -> None:
    kind = "launcher.exit in attempt train"
    run = good_run().write(tmp_path / "run")
    (found,) = (
        removal
        for removal in sweep(BASE, run, tmp_path / "copies", {"told by another": {kind: "uce"}})
        if removal.kind == kind
    )
    assert found.green and not found.held
    assert gap_reason("uce", [kind], {"told by another": {kind: "uce"}}) == "told by another"


def test_an_excuse_that_its_run_does_not_need_is_stale(removals: list[Removal]) -> None:
    excuses = {
        "needed": {"launcher.found in attempt train": BASE, "handler.enter of rank 3 in attempt train": BASE},
        "not needed": {"fault.landed": BASE, "handler.enter of rank 0 in attempt train": BASE},
        "not there": {"fault.armed in attempt resume": BASE},
        "perhaps in another": {"launcher.found in attempt other": f"{BASE} uce"},
        "not swept": {f"{OF_BASELINE}rank.exit in attempt train": "uce"},
    }
    assert stale(removals, excuses) == (
        f"base {BASE}: fault.landed (not needed)",
        f"base {BASE}: handler.enter of rank 0 in attempt train (not needed)",
        f"base {BASE}: fault.armed in attempt resume (not there)",
    )


def test_a_stale_excuse_is_a_failure_of_the_selftest_and_is_printed() -> None:
    kind = "handler.enter in attempt train"
    assert gap_reason("tsp", [kind])
    removal = Removal("tsp", "handler.enter of rank 1 in attempt train", (), kind=kind)
    result = Result((), (removal,), 1.0)
    assert not result.good and result.passed == ()
    (told,) = result.to_json()["stale_excuses"]
    shown = io.StringIO()
    print_selftest(result, Console(file=shown, width=200))
    assert told.startswith("base tsp: ") and f"stale: nothing passed without {told}" in shown.getvalue()


def test_every_excuse_is_of_bases_that_are_swept() -> None:
    swept = {defect.base for defect in catalogue() if defect.layer == FILES}
    named = [base for kinds in ALLOWED_GAPS.values() for bases in kinds.values() for base in bases.split()]
    assert set(named) <= swept
    pairs = [(kind, base) for kinds in ALLOWED_GAPS.values() for kind, bases in kinds.items() for base in bases.split()]
    assert len(pairs) == len(set(pairs))
    assert all(gap_reason(base, [kind]) for kind, base in pairs)


@pytest.mark.nightly
def test_from_a_run_on_several_hosts_the_evidence_is_taken_away_and_not_their_clocks_with_it(tmp_path: Path) -> None:
    run = on_hosts(good_run(), Host("second", (2, 3))).write(tmp_path / "run")
    green = {removal.kind for removal in sweep(BASE, run, tmp_path / "copies") if removal.green}
    assert "launcher.found in attempt train" in green


def test_a_check_that_passes_with_nothing_to_look_at_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
        bad = [event for event in history.select("rank.exit", attempt="resume") if event.data.get("code") != 0]
        return [Finding("careless", "fail" if bad else "pass", "all end well", f"{len(bad)} did not")]

    monkeypatch.setattr(evidence, "BUILT_IN", {"careless": careless})
    run = good_run().write(tmp_path / "run")
    green = [removal.evidence for removal in sweep(BASE, run, tmp_path / "copies") if not removal.held]
    assert "rank.exit of rank 2 in attempt resume" in green
