"""The rehearsal of a MindFormers job says what is not genuine, and makes what its own tiny jobs read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.base.registry import registry
from chaos.doctor import PROBES
from chaos.jobs.kind import Launch
from chaos.jobs.mindformers.job import KIND as GENUINE
from chaos.rehearsal.mindformers.data import write_data
from chaos.rehearsal.mindformers.job import KIND
from chaos.rehearsal.mindformers.strategy import strategy_of, write_strategies
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Scenario

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
    fields = {part.layer: part.part for part in KIND.simulated(scenario(), "standin")}
    for name in ("RmsNorm", "Outer", "FlashAttentionScore", "EmbeddingDenseBackward", "NPUGetFloatStatusV2"):
        assert name in fields["kernels"]


def test_a_configuration_of_its_own_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO, "utf-8")
    loaded = load_scenario(tmp_path / "s.yaml", names=known_names())
    plan = plan_cell(loaded, loaded.cells[0], draw_seed=0)
    assert (plan.layout.ranks, plan.training.checkpoint_interval) == (1, 3)
    assert plan.resume.restore is not None and plan.resume.restore.step == 6
    assert plan.resume.restore.holders == {0: (0,)}
    assert "MindFormers, resume training" in " ".join(plan.explanation.reasons)


def test_a_file_beside_the_scenario_comes_before_one_of_its_own(tmp_path: Path) -> None:
    own = next(iter((Path(__file__).parents[4] / OWN / "configs").glob("qwen3.yaml")))
    changed = yaml.safe_load(own.read_text("utf-8"))
    changed["seed"] = 5
    (tmp_path / "qwen3.yaml").write_text(yaml.safe_dump(changed), "utf-8")
    (tmp_path / "s.yaml").write_text(SCENARIO, "utf-8")
    loaded = load_scenario(tmp_path / "s.yaml", names=known_names())
    assert plan_cell(loaded, loaded.cells[0], draw_seed=0).training.seed == 5


def test_the_training_data_depend_on_the_seed_alone(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        write_data(tmp_path / name, samples=3, seed=seed)
    one, same, other = ((tmp_path / name / "train.jsonl").read_text("utf-8") for name in ("one", "same", "other"))
    assert one == same != other
    samples = [json.loads(line) for line in one.splitlines()]
    assert len(samples) == 3
    assert all(sample["labels"][:-1] == sample["input_ids"][1:] for sample in samples)


def protected(*mechanisms: str, ranks: int = 2) -> Scenario:
    """Two data-parallel ranks of the legacy model, with these mechanisms."""
    overrides = {"parallel_config.data_parallel": ranks}
    job: dict[str, Any] = {"kind": "mindformers-rehearsal", "config": "llama.yaml", "steps": 12, "overrides": overrides}
    job["protection"] = mechanisms
    return Scenario.model_validate({"chaos": 1, "name": "n", "cluster": {"ranks": ranks}, "job": job})


def launched(tmp_path: Path, scenario: Scenario, *, resume: bool) -> dict[str, Any]:
    """The copy of the configuration that a launch trains from."""
    (tmp_path / "logs").mkdir(exist_ok=True)
    (tmp_path / "msrun").touch()
    launch = Launch(scenario, tmp_path, tmp_path, tmp_path / "logs", resume, (1, 2), tmp_path / "python", "standin")
    KIND.command(launch)
    name = "mindformers-resume.yaml" if resume else "mindformers.yaml"
    copy: dict[str, Any] = yaml.safe_load((tmp_path / name).read_text("utf-8"))
    return copy


def test_a_resume_after_an_end_of_life_checkpoint_finds_the_replicas_by_the_strategies(tmp_path: Path) -> None:
    strategies = tmp_path / "output" / "strategy"
    assert "src_strategy_path_or_dir" not in launched(tmp_path, protected("TTP"), resume=False)
    assert not strategies.exists()
    assert launched(tmp_path, protected("TTP"), resume=True)["src_strategy_path_or_dir"] == str(strategies)
    assert sorted(file.name for file in strategies.iterdir()) == [f"ckpt_strategy_rank_{rank}.ckpt" for rank in (0, 1)]
    entries = [part.part for part in KIND.simulated(protected("TTP"), "standin")]
    assert "the parallel strategy that decides which rank's checkpoint a rank may load" in entries


def test_without_a_step_level_mechanism_no_strategy_is_put_in(tmp_path: Path) -> None:
    assert "src_strategy_path_or_dir" not in launched(tmp_path, protected(), resume=True)
    assert not (tmp_path / "output" / "strategy").exists()
    assert not [part for part in KIND.simulated(protected("TRE"), "standin") if "strategy" in part.part]


def test_a_strategy_is_what_mindspore_writes_of_a_parameter_that_every_rank_holds(tmp_path: Path) -> None:
    """The bytes are those of MindSpore 2.10's own message; its ``get_parameter_redundancy`` reads ((0, 1),) in them."""
    assert strategy_of(2).hex() == "08001a1c0a017712170a020802120b08ffffffffffffffffff01280030003800"
    (tmp_path / "ckpt_strategy_rank_0.ckpt").write_bytes(b"the job's own")
    write_strategies(tmp_path, 2)
    assert (tmp_path / "ckpt_strategy_rank_0.ckpt").read_bytes() == b"the job's own"
    with pytest.raises(ValueError, match="1 to 127"):
        strategy_of(128)


@pytest.mark.parametrize("mechanism", ["UCE", "HCCE", "ARF", "TSP", "RSC"])
def test_mechanisms_that_were_not_seen_in_one_graph_are_refused_by_name(tmp_path: Path, mechanism: str) -> None:
    text = SCENARIO.replace("qwen3.yaml, steps: 12", f"llama.yaml, steps: 12, protection: [{mechanism}]")
    (tmp_path / "s.yaml").write_text(text, "utf-8")
    with pytest.raises(ScenarioError, match=f"does not take part in {mechanism}"):
        loaded = load_scenario(tmp_path / "s.yaml", names=known_names())
        plan_cell(loaded, loaded.cells[0], draw_seed=0)
