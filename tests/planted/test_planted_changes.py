"""Every plant applies to its job as it is, what it makes compiles, and the scenario stays that of the sound job."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.cli.main import entry
from tests.kit.jobs.habit_jobs import OPTIONS, copied
from tests.planted.bugs import BUGS, BY_ID
from tests.planted.catalogue import JOBS
from tests.planted.plant import PlantedJob


def scenario_of(job: PlantedJob, bug: str, place: Path) -> dict[str, Any]:
    """What ``chaos init`` writes for the job with a bug, or without any."""
    directory = copied(job.habit, place)
    options: tuple[str, ...] = ()
    if bug:
        (directory / job.script).write_text(job.changed(bug))
        options = job.plants[bug].options
    assert entry(["init", str(directory), *OPTIONS[job.habit], *options]) == 0
    (scenario,) = directory.glob("*-kill.yaml")
    return dict(yaml.safe_load(scenario.read_text()))


def test_every_job_has_the_eight_bugs() -> None:
    assert len(BUGS) == len(BY_ID) == 8
    assert set(JOBS) == set(OPTIONS)
    assert all(list(job.plants) == list(BY_ID) for job in JOBS.values())


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_every_change_applies_and_compiles_and_is_another(job: PlantedJob) -> None:
    changed = {bug: ast.dump(ast.parse(job.changed(bug))) for bug in job.plants}
    sound = ast.dump(ast.parse(job.sound()))
    assert len({sound, *changed.values()}) == len(changed) + 1


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_a_bug_changes_nothing_that_the_scenario_says(job: PlantedJob, tmp_path: Path) -> None:
    sound = scenario_of(job, "", tmp_path / "sound")
    for bug, plant in job.plants.items():
        scenario = scenario_of(job, bug, tmp_path / bug)
        if plant.options:  # the fault comes later, behind a second checkpoint
            (fault,) = scenario["faults"]
            interval = scenario["job"]["checkpoint_interval"]
            assert fault["trigger"]["step"] > 2 * interval
            scenario = {
                **scenario,
                "job": {**scenario["job"], "checkpoint_interval": sound["job"]["checkpoint_interval"]},
                "faults": sound["faults"],
                "description": sound["description"],
            }
        assert scenario == sound, bug
