"""A job of MindSpeed-LLM whose arguments, variables and faults a test changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.plan.model import Plan
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import Problem, ScenarioError
from chaos.scenario.load import load_scenario

SOUND = (
    "--use-distributed-optimizer",
    "--train-iters=40",
    "--save-interval=10",
    "--save=/ckpt",
    "--load=/ckpt",
)
KILL = {"kind": "kill", "target": {"rank": 5}, "trigger": {"step": 15, "phase": "step.end"}}


class MindSpeedScenario:
    """A scenario of a job of MindSpeed-LLM on 8 ranks."""

    def __init__(self, directory: Path) -> None:
        (directory / "pretrain_gpt.py").write_text("")
        self.file = directory / "scenario.yaml"

    def write(
        self,
        *arguments: str,
        environment: dict[str, str] | None = None,
        ranks: int = 8,
        nodes: int = 1,
        faults: Sequence[dict[str, Any]] = (KILL,),
        sound: Sequence[str] = SOUND,
        expect: dict[str, Any] | None = None,
        **job: Any,
    ) -> None:
        # An own network between nodes of this host is a platform of several launchers.
        cluster = {"ranks": ranks, "nodes": nodes, **({"platform": "docker"} if nodes > 1 else {})}
        data = {
            "chaos": 1,
            "name": "example",
            "cluster": cluster,
            "job": {
                "kind": "mindspeed",
                "script": "pretrain_gpt.py",
                "arguments": [*sound, *arguments],
                **({"environment": environment} if environment else {}),
                **job,
            },
            "faults": list(faults),
            "expect": {"loss": {"tolerance": 0.001}, **(expect or {})},
        }
        self.file.write_text(yaml.safe_dump(data, sort_keys=False))

    def plan(self, *arguments: str, **keys: Any) -> Plan:
        self.write(*arguments, **keys)
        loaded = load_scenario(self.file, names=known_names())
        return plan_cell(loaded, loaded.cells[0], 1)

    def refused(self, *arguments: str, **keys: Any) -> list[Problem]:
        with pytest.raises(ScenarioError) as caught:
            self.plan(*arguments, **keys)
        return list(caught.value.problems)

    def line(self, word: str) -> int:
        return next(number for number, text in enumerate(self.file.read_text().splitlines(), 1) if word in text)


@pytest.fixture
def job(tmp_path: Path) -> MindSpeedScenario:
    return MindSpeedScenario(tmp_path)
