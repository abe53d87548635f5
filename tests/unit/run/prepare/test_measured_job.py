"""A tolerance is of the job with which it was measured: what has changed since is named, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.run.prepare import measured_job
from chaos.run.prepare.measured_job import record_of
from chaos.run.prepare.prepare import plan_cell, prepare
from chaos.scenario.load import LoadedScenario, load_scenario

SCENARIO: dict[str, Any] = {
    "chaos": 1,
    "name": "noisy",
    "cluster": {"ranks": 2},
    "job": {
        "kind": "mindspore",
        "script": "train.py",
        "arguments": ["--seed=1"],
        "steps": 12,
        "checkpoint_interval": 4,
        "environment": {"OMP_NUM_THREADS": "1"},
    },
    "faults": [{"kind": "kill", "target": {"ranks": [0, 1]}, "trigger": {"step": 7}}],
    "expect": {"loss": {"tolerance": 0.01}},
}
RELEASES = {"chaos": "1", "mindspore": "2.7.0", "numpy": "1.26.4", "mindio_ttp": "7"}

Change = Callable[[dict[str, Any], Path], None]


Changed = Callable[[Change], tuple[str, ...]]


@pytest.fixture
def changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Changed:
    """Make a change in a calibrated job and return what its plan says has changed."""
    monkeypatch.setattr(measured_job, "versions", lambda: RELEASES)
    (tmp_path / "train.py").write_text("import model\n")
    (tmp_path / "model.py").write_text("pass\n")
    loaded = write(tmp_path, SCENARIO)
    record = record_of(prepare(loaded, loaded.cells[0], "standin"))

    def changed_since(change: Change) -> tuple[str, ...]:
        scenario = deepcopy(SCENARIO)
        scenario["expect"]["loss"]["measured"] = record
        change(scenario, tmp_path)
        loaded = write(tmp_path, scenario)
        plan = plan_cell(loaded, loaded.cells[0])
        said = [reason for reason in plan.explanation.reasons if "tolerance was measured with another job" in reason]
        assert len(said) == bool(plan.equivalence.outdated_by)
        return plan.equivalence.outdated_by

    return changed_since


def write(directory: Path, scenario: dict[str, Any]) -> LoadedScenario:
    (directory / "noisy.yaml").write_text(yaml.safe_dump(scenario))
    return load_scenario(directory / "noisy.yaml", settings={})


def nothing(scenario: dict[str, Any], directory: Path) -> None:
    pass


def what_changes_no_noise(scenario: dict[str, Any], directory: Path) -> None:
    scenario["job"].update(resume_arguments=["--resume"], savers="every rank", digest_interval=1, steps_per_update=1)
    scenario["cluster"]["parallel"] = {"data_parallel": 2}
    scenario["faults"][0]["trigger"]["step"] = 6
    scenario["name"] = "another"


def another_directory(scenario: dict[str, Any], directory: Path) -> None:
    (directory / "elsewhere").mkdir()
    for path in ("train.py", "model.py"):
        (directory / "elsewhere" / path).write_bytes((directory / path).read_bytes())
    scenario["job"]["script"] = "elsewhere/train.py"


@pytest.mark.parametrize("change", [nothing, what_changes_no_noise, another_directory])
def test_of_the_same_job_nothing_is_said(changed: Changed, change: Change) -> None:
    assert changed(change) == ()


def edit(path: Path) -> None:
    path.write_text(f"{path.read_text()}import os\n")


CHANGES: dict[str, Change] = {
    "the script": lambda scenario, directory: edit(directory / "train.py"),
    "another file of the job": lambda scenario, directory: edit(directory / "model.py"),
    "job.arguments": lambda scenario, directory: scenario["job"].update(arguments=["--seed=2"]),
    "job.environment": lambda scenario, directory: scenario["job"].update(environment={}),
    "job.steps": lambda scenario, directory: scenario["job"].update(steps=16),
    "job.seed": lambda scenario, directory: scenario["job"].update(seed=2),
    "cluster.ranks from 2 to 4": lambda scenario, directory: scenario["cluster"].update(ranks=4),
    "cluster.parallel": lambda scenario, directory: scenario["cluster"].update(parallel={"pipeline_stage": 2}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_has_changed_is_named(changed: Changed, name: str) -> None:
    assert changed(CHANGES[name]) == (name,)


@pytest.mark.parametrize(
    ("now", "name"),
    [
        ({"mindspore": "2.8.0"}, "mindspore from 2.7.0 to 2.8.0"),
        ({"numpy": "2.0.0"}, "numpy from 1.26.4 to 2.0.0"),
        ({"chaos": "2", "mindio_ttp": "8", "mindformers": "1.5"}, None),
    ],
)
def test_a_release_that_has_changed_is_named(
    changed: Changed, monkeypatch: pytest.MonkeyPatch, now: dict[str, str], name: str | None
) -> None:
    monkeypatch.setattr(measured_job, "versions", lambda: RELEASES | now)
    assert changed(nothing) == (() if name is None else (name,))


def test_a_tolerance_without_a_record_stays_as_it_is(changed: Changed) -> None:
    def by_hand(scenario: dict[str, Any], directory: Path) -> None:
        del scenario["expect"]["loss"]["measured"]
        scenario["job"]["arguments"] = ["--seed=2"]

    assert changed(by_hand) == ()


def test_a_record_without_a_tolerance_means_nothing(changed: Changed) -> None:
    def without(scenario: dict[str, Any], directory: Path) -> None:
        scenario["expect"]["loss"]["tolerance"] = 0
        scenario["job"]["arguments"] = ["--seed=2"]

    assert changed(without) == ()
