"""The rehearsal of a MindFormers job says what is not genuine, and makes what its own tiny jobs read."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from chaos.jobs.mindformers.job import KIND as GENUINE
from chaos.registry import registry
from chaos.rehearsal.mindformers.data import write_data
from chaos.rehearsal.mindformers.job import KIND
from chaos.run.machine import PROBES
from chaos.run.prepare import known_names, plan_cell
from chaos.scenario.load import load_scenario
from chaos.scenario.model import Scenario

OWN = Path(KIND.__class__.__module__.replace(".", "/")).parent
SCENARIO = """\
chaos: 1
name: example
job: {kind: mindformers-rehearsal, config: qwen3.yaml, steps: 12}
faults:
  - {kind: kill, target: {rank: 0}, trigger: {step: 8, phase: allreduce.enter}}
expect: {resume: {step: 7}}
"""


def scenario() -> Scenario:
    described = {"kind": "mindformers-rehearsal", "config": "qwen3.yaml", "steps": 12}
    return Scenario.model_validate({"chaos": 1, "name": "n", "cluster": {"ranks": 1}, "job": described})


def test_only_the_rehearsal_puts_anything_in_the_place_of_a_device() -> None:
    assert registry("jobs").load("mindformers-rehearsal") is KIND
    assert set(KIND.needs) <= set(PROBES)
    assert any("chaos.rehearsal" in name for name in KIND.extensions)
    assert GENUINE.extensions == ()
    assert GENUINE.simulated(scenario(), "vendor") == ()


def test_every_kernel_that_is_replaced_is_named_with_its_layer() -> None:
    told = {part.layer: part.part for part in KIND.simulated(scenario(), "standin")}
    for name in ("RmsNorm", "Outer", "FlashAttentionScore", "EmbeddingDenseBackward", "NPUGetFloatStatusV2"):
        assert name in told["kernels"]


def test_a_configuration_of_its_own_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO, "utf-8")
    loaded = load_scenario(tmp_path / "s.yaml", names=known_names())
    plan = plan_cell(loaded, loaded.cells[0], draw_seed=0)
    assert (plan.ranks, plan.checkpoint_interval) == (1, 3)
    assert plan.restore is not None and plan.restore.step == 6
    assert plan.restore.holders == {0: (0,)}
    assert "MindFormers, resume training" in " ".join(plan.reasons)


def test_a_file_beside_the_scenario_comes_before_one_of_its_own(tmp_path: Path) -> None:
    own = next(iter((Path(__file__).parents[3] / OWN / "configs").glob("qwen3.yaml")))
    changed = yaml.safe_load(own.read_text("utf-8"))
    changed["seed"] = 5
    (tmp_path / "qwen3.yaml").write_text(yaml.safe_dump(changed), "utf-8")
    (tmp_path / "s.yaml").write_text(SCENARIO, "utf-8")
    loaded = load_scenario(tmp_path / "s.yaml", names=known_names())
    assert plan_cell(loaded, loaded.cells[0], draw_seed=0).seed == 5


def test_the_training_data_depend_on_the_seed_alone(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        write_data(tmp_path / name, samples=3, seed=seed)
    one, same, other = ((tmp_path / name / "train.jsonl").read_text("utf-8") for name in ("one", "same", "other"))
    assert one == same != other
    samples = [json.loads(line) for line in one.splitlines()]
    assert len(samples) == 3
    assert all(sample["labels"][:-1] == sample["input_ids"][1:] for sample in samples)
