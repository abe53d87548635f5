"""Whatever a scenario names is looked up once for a run of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from chaos.base.registry import Registry
from chaos.run.prepare.prepare import known_names, prepare
from chaos.scenario.load import load_scenario

SCENARIO = """\
chaos: 1
name: asked
cluster: {ranks: 4, nodes: 2, network: true, platform: local-nodes, parallel: {data_parallel: 4}}
job: {kind: plain, steps: 12, protection: [TTP]}
faults:
  - {id: first, kind: kill, target: {rank: 1}, trigger: {step: 6, phase: optimizer.update}}
  - {id: second, kind: kill, target: {rank: 2}, trigger: {step: 6, phase: optimizer.update}}
  - {id: slow, kind: network-delay, target: {node: 1}, trigger: {step: 3}, parameters: {milliseconds: 5, seconds: 1}}
"""


def test_the_registry_is_asked_once_for_each_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "asked.yaml"
    path.write_text(SCENARIO)
    loaded = load_scenario(path, settings={}, names=known_names())
    asked: Counter[tuple[str, str]] = Counter()
    load = Registry.load

    def counted(registry: Registry, name: str) -> Any:
        asked[registry.group, name] += 1
        return load(registry, name)

    monkeypatch.setattr(Registry, "load", counted)
    prepare(loaded, loaded.cells[0], "standin")
    kinds = {name: times for (group, name), times in asked.items() if group == "chaos.faults"}
    assert kinds == {"kill": 1, "network-delay": 1}
    assert {times for (group, _), times in asked.items() if group in ("chaos.jobs", "chaos.platforms")} == {1}
