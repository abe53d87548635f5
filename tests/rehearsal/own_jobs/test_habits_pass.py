"""Sound jobs of different habits go from ``chaos init`` to *pass* without a change of theirs; examples work at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kit.jobs.habit_jobs import CALIBRATED, OPTIONS, copied, with_scenario
from tests.rehearsal.kit import Chaos

WITHOUT_MINDSPORE = """
import chaos.init.written_example
chaos.init.written_example.has_framework = lambda: False
"""


@pytest.mark.nightly
@pytest.mark.parametrize("habit", [habit for habit in OPTIONS if habit not in CALIBRATED])
def test_a_sound_job_goes_from_init_to_pass(habit: str, fresh: Chaos, tmp_path: Path) -> None:
    done = fresh.run(with_scenario(fresh, copied(habit, tmp_path)))
    assert done.code == 0, done
    assert done.run.history.first("load.end", attempt="resume") is not None


@pytest.mark.nightly
@pytest.mark.parametrize("habit", CALIBRATED)
def test_a_job_with_dropout_passes_once_its_noise_is_measured(habit: str, fresh: Chaos, tmp_path: Path) -> None:
    scenario = with_scenario(fresh, copied(habit, tmp_path))
    done = fresh.run(scenario)
    assert done.code == 0, done
    script = scenario.with_name("train.py")
    script.write_text(f"{script.read_text()}# changed\n")
    changed = fresh.run(scenario)
    assert changed.code == 2, changed
    assert "(changed since: the script); run chaos calibrate again" in json.dumps(changed.run.result)


@pytest.mark.nightly
def test_the_example_with_mindspore_works_at_once(fresh: Chaos, tmp_path: Path) -> None:
    assert fresh("init", "--example", tmp_path / "example").code == 0
    done = fresh.run(tmp_path / "example" / "train-kill.yaml")
    assert done.code == 0, done


def test_the_example_without_mindspore_works_at_once(fresh: Chaos, tmp_path: Path) -> None:
    made = fresh("init", "--example", tmp_path / "example", patch=WITHOUT_MINDSPORE)
    assert made.code == 0 and "MindSpore is not installed here" in made.output
    done = fresh.run(tmp_path / "example" / "plain.yaml")
    assert done.code == 0, done
