"""Scenario texts, and short ways to load them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.scenario.errors import Problem, ScenarioError
from chaos.scenario.load import LoadedScenario, load_scenario
from chaos.scenario.names import KnownNames

NAMES = KnownNames({"process.kill", "process.stop"}, {"rehearsal"}, {"local"})

MINIMAL = """\
chaos: 1
name: minimal
cluster: {ranks: 4}
job: {steps: 10}
"""

FULL = """\
# A comment before the first key.
chaos: 1
name: kill-${victim}
description: Kill rank ${victim} at ${phase}; costs $5, not $${5}
tags: [ttp, kill]
variables:
  victim: 1
  total: 90s
matrix:
  phase: [step.begin, step.end]
cluster:
  platform: local
  nodes: 2
  ranks: 8
  parallel:
    data_parallel: 8
    enable_parallel_optimizer: true
    optimizer_weight_shard_size: 4
job:
  kind: rehearsal
  script: jobs/train.py
  arguments: ["--fast"]
  steps: 10
  checkpoint_interval: 5
  environment: {GLOG_v: "2"}
  protection: [TTP, ARF]
  controller: outside
faults:
  - id: kill
    kind: process.kill
    target:
      rank: ${victim}
    trigger:
      step: 5
      phase: ${phase}
  - kind: process.stop
    target: {random: {count: 2, seed: 3, among: [0, 2, 4]}}
    trigger:
      any:
        - after: kill
        - elapsed: 200ms
        - all: [{log: {contains: error, rank: 3}}, {step: 10}]
    parameters: {free: [1, {deep: null}]}
expect:
  mechanism: TTP
  checkpoint: {step: 5, ranks: [0, 2, 3, 5]}
  resume: none
  loss: {tolerance: 0.001}
  recovery:
    total: ${total}
    phases: {detection: 1.5s}
baseline: none
deadlines: {run: 5m}
finding: F-07
failing: [loss]
"""


@pytest.fixture
def minimal() -> str:
    """The smallest scenario."""
    return MINIMAL


@pytest.fixture
def full() -> str:
    """A scenario that uses most of the language."""
    return FULL


@pytest.fixture
def names() -> KnownNames:
    """The names that are registered in these tests."""
    return NAMES


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a scenario file and return its path."""

    def write(text: str | bytes, name: str = "scenario.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def load(write: Write) -> Callable[..., LoadedScenario]:
    """Load a scenario from its text."""

    def load(text: str | bytes, **settings: Any) -> LoadedScenario:
        return load_scenario(write(text), settings=settings, names=NAMES)

    return load


@pytest.fixture
def problems(write: Write) -> Callable[..., list[Problem]]:
    """The problems of a scenario text; the test fails if it has none."""

    def problems(text: str | bytes, **settings: Any) -> list[Problem]:
        with pytest.raises(ScenarioError) as caught:
            load_scenario(write(text), settings=settings, names=NAMES)
        return list(caught.value.problems)

    return problems
