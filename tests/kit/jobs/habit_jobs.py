"""The jobs of tests/habits: what ``chaos init`` is told about each of them, and how their scenarios are written."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tests.rehearsal.kit import Chaos

HABITS = Path(__file__).parents[2] / "habits"

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
    "with-dropout": [],
}
"""The jobs, each with what nobody can read in its source."""

CALIBRATED = ("with-dropout",)
"""The jobs whose noise ``chaos calibrate`` has to measure first."""

LIMITS = {"every-rank-saves": "expect: {loss: {state: {'moment.*': {norm: 1.0e-6, sample: 1.0e-6}}}}\n"}
"""What the scenario gets where a kernel rounds otherwise in a resumed process (docs/guides/mindspore-jobs.md)."""


def copied(habit: str, place: Path) -> Path:
    """A copy of the job in ``place``."""
    return shutil.copytree(HABITS / habit, place / habit)


def with_scenario(chaos: Chaos, job: Path, options: Sequence[str] = ()) -> Path:
    """The scenario that ``chaos init`` writes for a copied job, with its limits.

    The noise of a calibrated job is measured, which trains it several times.
    """
    if any("import chaos_steps" in script.read_text() for script in job.glob("*.py")):
        (job / "chaos_steps.py").write_text(chaos("steps").output)
    made = chaos("init", job, *OPTIONS[job.name], *options)
    assert made.code == 0, made
    (scenario,) = job.glob("*-kill.yaml")
    scenario.write_text(scenario.read_text() + LIMITS.get(job.name, ""))
    if job.name in CALIBRATED:
        measured = chaos("calibrate", scenario, "--reports", chaos.reports, "--cores", "1")
        assert measured.code == 0, measured
    return scenario
