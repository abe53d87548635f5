"""Sound jobs of different habits go from ``chaos init`` to *pass* without a change of theirs; examples work at once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.rehearsal.kit import Chaos

HABITS = Path(__file__).parents[1] / "habits"

OPTIONS: dict[str, list[str]] = {
    "rank-0-saves": [],
    "two-stages": ["--pipeline-stages=2"],
    "gradient-accumulation": [],
    "newest-by-content": [],
    "mixed-precision": [],
    "own-loop": ["--steps=20", "--checkpoint-interval=5"],
    "graph-mode": [],
    "safetensors-files": [],
    "model-train": ["--steps=12"],
    "sharded-optimizer": ["--sharded-optimizer"],
    "every-rank-saves": [],
}
"""The jobs, each with what nobody can read in its source."""

LIMITS = {"every-rank-saves": "expect: {loss: {state: {'moment.*': {norm: 1.0e-6, sample: 1.0e-6}}}}\n"}
"""What the scenario gets where a kernel rounds otherwise in a resumed process (docs/guides/mindspore-jobs.md)."""

WITHOUT_MINDSPORE = """
import chaos.init.written_example
chaos.init.written_example.has_framework = lambda: False
"""


@pytest.mark.nightly
@pytest.mark.parametrize("habit", OPTIONS)
def test_a_sound_job_goes_from_init_to_pass(habit: str, fresh: Chaos, tmp_path: Path) -> None:
    job = tmp_path / habit
    shutil.copytree(HABITS / habit, job)
    if any("import chaos_steps" in script.read_text() for script in job.glob("*.py")):
        (job / "chaos_steps.py").write_text(fresh("steps").output)
    made = fresh("init", job, *OPTIONS[habit])
    assert made.code == 0, made
    (scenario,) = job.glob("*-kill.yaml")
    scenario.write_text(scenario.read_text() + LIMITS.get(habit, ""))
    done = fresh.run(scenario)
    assert done.code == 0, done
    assert done.run.history.first("load.end", attempt="resume") is not None


@pytest.mark.nightly
def test_a_job_with_dropout_passes_once_its_noise_is_measured(fresh: Chaos, tmp_path: Path) -> None:
    job = tmp_path / "with-dropout"
    shutil.copytree(HABITS / job.name, job)
    assert fresh("init", job).code == 0
    (scenario,) = job.glob("*-kill.yaml")
    measured = fresh("calibrate", scenario, "--reports", fresh.reports, "--cores", "1")
    assert measured.code == 0, measured
    done = fresh.run(scenario)
    assert done.code == 0, done
    script = job / "train.py"
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
