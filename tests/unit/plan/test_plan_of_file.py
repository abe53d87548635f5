"""A plan made from a scenario file points at the file's own lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.plan.build import build_plan
from chaos.plan.job_effect import DEATH
from chaos.plan.model import Plan
from chaos.plan.planned_kind import PlannedKind
from chaos.plan.points import PHASE_ORDER
from chaos.plan.source import Source
from chaos.plan.traits import JobTraits
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario

EXAMPLE = """\
chaos: 1
name: example
cluster:
  ranks: 8
  parallel:
    data_parallel: 8
    enable_parallel_optimizer: true
    optimizer_weight_shard_size: 4
job:
  steps: 19
  protection: [TTP]
faults:
  - kind: kill
    target:
      rank: 1
    trigger:
      step: 6
expect:
  checkpoint:
    step: 5
  recovery:
    phases:
      first step: 20s
"""


def plan_of(text: str, directory: Path) -> Plan:
    path = directory / "example.yaml"
    path.write_text(text, encoding="utf-8")
    (cell,) = load_scenario(path).cells
    return build_plan(
        cell.scenario,
        Source("example.yaml", cell.lines, cell.name),
        traits=JobTraits(frozenset(PHASE_ORDER), "mindspore"),
        kinds={"kill": PlannedKind(DEATH)},
        draw_seed=lambda: 1,
    )


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    plan = plan_of(EXAMPLE, tmp_path)
    lines = plan.explanation.lines
    assert plan.checkpoint is not None and plan.checkpoint.savers == (0, 5, 2, 3)
    assert plan.faults[0].line == 13
    assert (lines["checkpoint"], lines["checkpoint.step"], lines["checkpoint.ranks"]) == (19, 20, 16)
    assert (lines["recovery.first step"], lines["recovery.save"]) == (23, 9)
    assert (lines["resume"], lines["resume.step"], lines["last_step"]) == (9, 20, 10)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("shard_size: 4", "shard_size: 8", "example.yaml:8:5: the optimizer shards leave one copy"),
        ("rank: 1", "rank: 0", "example.yaml:14:5: rank 0 hosts the MindIO TFT controller"),
        ("step: 6", "step: 1", "example.yaml:16:5: the ranks are lost before step 1"),
        ("    step: 5", "    step: 6", "example.yaml:20:5: expect.checkpoint.step says step 6"),
        ("first step:", "fist step:", "example.yaml:23:7: a recovery by TTP has no phase 'fist step'"),
        ("steps: 19", "steps: 19\n  sink_size: 19", "example.yaml:11:3: the sink size is 19"),
    ],
)
def test_errors_name_line_and_column_of_the_file(old: str, new: str, place: str, tmp_path: Path) -> None:
    assert EXAMPLE.count(old) == 1
    with pytest.raises(ScenarioError) as error:
        plan_of(EXAMPLE.replace(old, new), tmp_path)
    assert str(error.value).startswith(place)
