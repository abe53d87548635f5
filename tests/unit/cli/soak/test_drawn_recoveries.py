"""What ``chaos soak --random`` draws are good recoveries, the same ones by the same seed; what they came to adds up."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
import pytest

from chaos.base.registry import registry
from chaos.cli.soak.random_soak import DrawnScenario, draw_scenarios, summarise
from chaos.mechanisms.drawing import PHASES
from chaos.plan.model import Plan
from chaos.plan.recovery.registry import mechanisms
from chaos.run.prepare.prepare import plan_cell
from chaos.scenario.load import load_scenario
from chaos.soak.recoveries import counts_within_epoch, overwrites_names, recipes
from chaos.soak.soak import SoakRun
from tests.unit.cli.kit import Ended

COUNT = 42


def draw(directory: Path, *, seed: int = 3, number: int = COUNT) -> list[DrawnScenario]:
    return draw_scenarios(number, seed, kinds=("rehearsal",), mechanisms=(), directory=directory)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[DrawnScenario]:
    return draw(tmp_path_factory.mktemp("drawn"))


def planned(scenario: DrawnScenario) -> Plan:
    return plan_cell(scenario.loaded, scenario.cell)


def test_every_one_ends_in_a_recovery_that_succeeds(drawn: list[DrawnScenario]) -> None:
    for scenario in drawn:
        plan = planned(scenario)
        assert plan.response.mechanism not in (None, "none"), scenario.loaded.path
        assert plan.response.goes_on or plan.resume.resumes, scenario.loaded.path
        assert not (plan.response.mechanism == "TTP" and plan.checkpoint is None), scenario.loaded.path


def test_they_vary_in_what_matters(drawn: list[DrawnScenario]) -> None:
    plans = [planned(scenario) for scenario in drawn]
    faults = [fault for plan in plans for fault in plan.faults]
    of_launcher = {mechanism.name for mechanism in mechanisms().values() if mechanism.of_launcher}
    assert {plan.response.mechanism for plan in plans} >= set(recipes()) - {"mixed"} - of_launcher
    assert len({scenario.acting for scenario in drawn}) >= 10
    assert {plan.layout.ranks for plan in plans} >= {2, 4}
    assert {fault.trigger.get("phase") for fault in faults} >= set(PHASES)
    assert {len(plan.faults) for plan in plans} >= {1, 2, 3}


def test_the_seed_and_the_number_give_a_scenario_again(drawn: list[DrawnScenario], tmp_path: Path) -> None:
    texts = [scenario.loaded.text for scenario in drawn]
    assert [scenario.loaded.text for scenario in draw(tmp_path / "again", number=5)] == texts[:5]
    assert [scenario.loaded.text for scenario in draw(tmp_path / "other", seed=4, number=5)] != texts[:5]


def test_each_is_kept_as_a_file_that_can_be_run_by_itself(drawn: list[DrawnScenario]) -> None:
    assert len({scenario.loaded.path for scenario in drawn}) == COUNT
    last = drawn[-1]
    assert load_scenario(last.loaded.path).cells[0].scenario == last.cell.scenario


def test_only_what_was_asked_for_is_drawn(tmp_path: Path) -> None:
    drawn = draw_scenarios(4, 1, kinds=("rehearsal",), mechanisms=("TRE",), directory=tmp_path)
    assert {scenario.acting for scenario in drawn} == {"TRE"}


def test_a_kind_of_job_gets_only_what_it_can_take_part_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limited = replace(registry("jobs").load("plain").traits, mechanisms=frozenset({"TTP", "UCE", "HCCE", "ARF", "TSP"}))
    monkeypatch.setattr("chaos.rehearsal.plain.job.PlainJob.traits", limited)
    drawn = draw_scenarios(10, 1, kinds=("plain",), mechanisms=(), directory=tmp_path)
    assert {scenario.kind for scenario in drawn} == {"plain"}
    assert not {"RSC", "TRE"} & {part for scenario in drawn for part in scenario.acting.split(", ")}
    monkeypatch.setattr("chaos.cli.soak.random_soak._TRIES", 5)
    with pytest.raises(click.UsageError, match="no good recovery of RSC could be drawn for jobs of kind plain"):
        draw_scenarios(1, 1, kinds=("plain",), mechanisms=("RSC",), directory=tmp_path)


def test_mindspore_is_not_asked_for_what_it_is_known_to_count_wrongly(tmp_path: Path) -> None:
    """Finding F-06: a fault after a repair beyond the first epoch. Plain ranks count on, and are asked."""
    asked = {
        kind: [
            counts_within_epoch(planned(scenario))
            for scenario in draw_scenarios(60, 22, kinds=(kind,), mechanisms=("mixed",), directory=tmp_path / kind)
        ]
        for kind in ("rehearsal", "plain")
    }
    assert not any(asked["rehearsal"])
    assert any(asked["plain"])


def test_mindspore_is_not_asked_for_a_rollback_after_which_it_saves_over_earlier_files(tmp_path: Path) -> None:
    """Finding F-14. Plain ranks name their files by the step, and are asked."""
    asked = {
        kind: [
            overwrites_names(planned(scenario))
            for scenario in draw_scenarios(8, 3, kinds=(kind,), mechanisms=("TRE",), directory=tmp_path / kind)
        ]
        for kind in ("rehearsal", "plain")
    }
    assert not any(asked["rehearsal"])
    assert any(asked["plain"])


def test_where_nothing_can_be_drawn_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.cli.soak.random_soak._TRIES", 5)
    with pytest.raises(click.UsageError, match="no good recovery of TTP could be drawn for jobs of kind mindspore"):
        draw_scenarios(1, 1, kinds=("mindspore",), mechanisms=("TTP",), directory=tmp_path)


def run(drawn: DrawnScenario, verdict: str | None, *, directory: str | None = None, load: float = 2.0) -> SoakRun:
    return SoakRun(drawn.cell.scenario.name, "", "key", verdict, directory, 0.0, 10.0, load)


def test_a_summary_counts_by_mechanism_and_says_why_one_did_not_pass(
    drawn: list[DrawnScenario], tmp_path: Path
) -> None:
    (tmp_path / "run-1").mkdir()
    bad = {"verdict": "unknown", "name": "loss", "expected": "a loss of every step", "seen": "none of step 3"}
    good = {**bad, "verdict": "pass"}
    (tmp_path / "run-1" / "result.json").write_text(json.dumps({"checks": [good, bad]}))
    first, second, third = drawn[:3]
    runs = [run(first, "pass"), run(second, "unknown", directory="run-1", load=8.0), run(third, None)]
    summary = summarise(drawn, runs, [run(first, "fail")], tmp_path)
    assert (summary["drawn"], summary["runs"]) == (COUNT, 3)
    assert summary["verdicts"] == {"pass": 1, "unknown": 1, "harness failed": 1}
    assert sum(one["runs"] for one in summary["by_mechanism"]) == 3
    assert summary["load"] == {"mean": 4.0, "max": 8.0}
    assert [one["reasons"] for one in summary["not_passed"]] == [
        ["unknown loss: a loss of every step | none of step 3"],
        ["there is no result"],
    ]
    assert summary["by_earlier_code"] == {"fail": 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give scenarios, or --random for drawn ones"),
        (("kill-rank", "--random", "3"), "give scenarios, or --random for drawn ones"),
        (("--random", "3", "--set", "a=1"), "leave --set, --cell, --allow-checks and --allow-hook out"),
        (("--random", "0"), "Invalid value for '--random'"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    chaos: Callable[..., Ended], place: Path, arguments: tuple[str, ...], words: str
) -> None:
    ended = chaos("soak", *arguments)
    assert ended.code == 64
    assert words in ended.err


def test_jobs_of_torchrun_are_drawn_with_every_way_to_spread_the_state(tmp_path: Path) -> None:
    drawn = draw_scenarios(60, 1, kinds=("torch",), mechanisms=(), directory=tmp_path)
    plans = [planned(scenario) for scenario in drawn]
    assert {scenario.acting for scenario in drawn} == {"ELASTIC", "ELASTIC, ELASTIC"}
    assert {plan.layout.shard for plan in plans} == {"none", "optimizer", "full"}
    assert any(plan.layout.shard == "full" and len(plan.layout.replica_groups[0]) == 2 for plan in plans), "HSDP"
    faults = [fault for plan in plans for fault in plan.faults]
    assert {fault.kind for fault in faults} == {"kill", "exit", "exception"}
    assert {fault.trigger["phase"] for fault in faults} == set(PHASES)
    assert {rank for fault in faults for rank in fault.ranks} == {0, 1, 2, 3}
    assert all((scenario.loaded.path.parent / str(scenario.cell.scenario.job.script)).is_file() for scenario in drawn)


def test_a_restart_by_torchrun_is_not_asked_of_other_launchers(tmp_path: Path) -> None:
    drawn = draw_scenarios(12, 1, kinds=("plain", "torch"), mechanisms=(), directory=tmp_path)
    assert {scenario.kind for scenario in drawn if "ELASTIC" in scenario.acting} == {"torch"}
    assert {scenario.kind for scenario in drawn if "ELASTIC" not in scenario.acting} == {"plain"}
