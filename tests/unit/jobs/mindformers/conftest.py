"""A small configuration in MindFormers' form, and ways to load and plan a scenario beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.plan.model import Plan
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import Cell, LoadedScenario, load_scenario

CONFIGURATION = """\
seed: 7
output_dir: ./output
use_parallel: True
run_mode: train
trainer:
  type: CausalLanguageModelingTrainer
  model_name: tiny
runner_config:
  epochs: 2
  batch_size: 1
  sink_mode: True
  sink_size: 1
parallel_config:
  data_parallel: 4
  model_parallel: 1
  pipeline_stage: 1
callbacks:
  - type: MFLossMonitor
  - type: CheckpointMonitor
    prefix: tiny
    save_checkpoint_steps: 4
context:
  device_target: Ascend
"""

SCENARIO = """\
chaos: 1
name: example
job:
  kind: mindformers
  config: job.yaml
  steps: 12
  protection: [TTP]
faults:
  - kind: kill
    target: {rank: 1}
    trigger: {step: 6, phase: step.end}
"""


class Room:
    """A directory with a scenario and its job's configuration."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.configuration = CONFIGURATION
        self.scenario = SCENARIO

    def change(self, old: str, new: str) -> Room:
        """Change the configuration."""
        assert old in self.configuration
        self.configuration = self.configuration.replace(old, new, 1)
        return self

    def change_scenario(self, old: str, new: str) -> Room:
        """Change the scenario."""
        assert old in self.scenario
        self.scenario = self.scenario.replace(old, new, 1)
        return self

    def checkout(self, version: str, template: str | None = None) -> Room:
        """Let the job train with a checkout of this version; empty where its sources tell none."""
        package = self.path / "checkout" / "mindformers"
        (package / "tools" / "register").mkdir(parents=True, exist_ok=True)
        message = f'__version__ = "{version}"\n' if version else ""
        (package / "__init__.py").write_text(f'{message}raise SystemExit("never imported")\n', "utf-8")
        if template is not None:
            (package / "tools" / "register" / "template.py").write_text(template, "utf-8")
        if "checkout: checkout" not in self.scenario:
            self.change_scenario("steps: 12", "steps: 12\n  checkout: checkout")
        return self

    def cell(self) -> Cell:
        """The scenario's first cell, completed."""
        return self._loaded()[1]

    def cells(self) -> tuple[Cell, ...]:
        """Every cell."""
        return self._loaded()[0].cells

    def plan(self) -> Plan:
        """The plan of the first cell."""
        return plan_cell(*self._loaded(), draw_seed=0)

    def refused(self) -> str:
        """The text of the problems; the test fails if there are none."""
        with pytest.raises(ScenarioError) as caught:
            self.plan()
        return str(caught.value)

    def _loaded(self) -> tuple[LoadedScenario, Cell]:
        self.write()
        loaded = load_scenario(Path("scenario.yaml"), names=known_names())
        return loaded, loaded.cells[0]

    def write(self) -> None:
        """Write both files."""
        (self.path / "job.yaml").write_text(self.configuration, "utf-8")
        (self.path / "scenario.yaml").write_text(self.scenario, "utf-8")


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    """A scenario beside a sound configuration of 4 data-parallel ranks, in the working directory."""
    monkeypatch.chdir(tmp_path)
    return Room(tmp_path)
