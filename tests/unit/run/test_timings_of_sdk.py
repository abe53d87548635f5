"""Whose timings a run has: the scenario's with the stand-in, the vendor's own with the vendor's package."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.cli.main import entry
from chaos.plan.budgets import PROFILES
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.run.prepare.versions import with_timings_of
from chaos.scenario.load import load_scenario
from tests.kit.shipped import shipped

SCENARIO = shipped("kill-rank")


@pytest.mark.parametrize(("sdk", "timings"), [("standin", "fast"), ("vendor", "vendor")])
def test_the_budgets_are_those_of_the_sdk(sdk: str, timings: str) -> None:
    loaded = load_scenario(SCENARIO, settings={}, names=known_names())
    cell = with_timings_of(sdk, loaded.cells[0])
    plan = plan_cell(loaded, cell)
    assert plan.response.timings == timings
    assert plan.response.budget.phases["detection"] == PROFILES[timings]["TTP"].phases["detection"]


@pytest.mark.parametrize(("name", "seconds"), [("kill-rank", 30.0), ("strategy-dump", 60.0)])
def test_with_an_agent_the_vendors_controller_waits_for_it_before_it_ends_the_ranks(name: str, seconds: float) -> None:
    loaded = load_scenario(shipped(name), settings={}, names=known_names())
    assert plan_cell(loaded, with_timings_of("vendor", loaded.cells[0])).response.budget.phases["exit"] == seconds
    fast = plan_cell(loaded, loaded.cells[0]).response.budget.phases["exit"]
    assert fast == PROFILES["fast"]["TTP"].phases["exit"]


def test_what_the_vendors_timings_forbid_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[str] = []
    monkeypatch.setattr("chaos.run.prepare.needs.choose_sdk", lambda wanted, **_: "vendor")
    monkeypatch.setattr("chaos.run.driver.run_cell", lambda prepared, *_: started.append(prepared.cell.name))
    partition = shipped("plain-partition-heals")
    reports = tmp_path / "reports"
    assert entry(["run", str(partition), "--reports", str(reports)]) == 64
    assert (started, reports.exists()) == ([], False)
    said = capsys.readouterr().err
    assert "plain-partition-heals.yaml:32:7: with timings vendor" in said and "use up to 2, or 55 and more" in said
    entry(["run", str(partition), "--reports", str(reports), "--set", "cut_seconds=60"])
    assert started == [""]
