"""The ranks of run and baseline keep samples where the scenario has a tolerance, and only there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.cli.scenarios import load
from chaos.run.baseline import without_faults
from chaos.run.launch.setup import agent_configuration
from chaos.run.prepare.prepare import prepare

_SCENARIO = """\
chaos: 1
name: tolerant
cluster: {{ranks: 2}}
job: {{kind: plain, steps: 12, seed: 7, protection: [TTP]}}
faults:
  - kind: kill
    target: {{rank: 1}}
    trigger: {{step: 6}}
{expect}
"""


@pytest.mark.parametrize(
    ("expect", "seed"),
    [
        ("", None),
        ("expect: {loss: {tolerance: 0}}", None),
        ("expect: {loss: {tolerance: 0.01}}", 7),
        ('expect: {loss: {state: {"*": {norm: 0.01}}}}', 7),
    ],
)
def test_samples_are_kept_only_with_a_tolerance(tmp_path: Path, expect: str, seed: int | None) -> None:
    path = tmp_path / "tolerant.yaml"
    path.write_text(_SCENARIO.format(expect=expect))
    loaded = load(str(path))
    prepared = prepare(loaded, loaded.cells[0], "standin", 1)
    baseline, plan = without_faults(prepared, prepared.scenario)
    assert (plan.equivalence.baseline, plan.faults) == ("none", ())
    for scenario in (prepared.scenario, baseline):
        text = agent_configuration(
            tmp_path, token="t", attempt="train", history=tmp_path, extensions=(), scenario=scenario
        )
        assert json.loads(text)["sample_seed"] == seed
