"""Planning the small scenarios that fault kinds have as examples."""

from __future__ import annotations

import shutil
from pathlib import Path

import chaos
from chaos.plan.model import Plan
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.load import load_scenario

HOSTS = """\
inventory: 1
hosts:
  - {name: one, address: 192.0.2.1, reboot: [reboot]}
  - {name: two, address: 192.0.2.2, reboot: [reboot]}
"""


def write_files(directory: Path) -> Path:
    """Write the files that the examples name: a script, a configuration and an inventory. Returns the directory."""
    (directory / "train.py").touch()
    (directory / "hosts.yaml").write_text(HOSTS)
    configs = Path(chaos.__file__).parent / "rehearsal" / "mindformers" / "configs"
    shutil.copy(configs / "llama.yaml", directory)
    return directory


def plans_of(text: str, directory: Path) -> list[Plan]:
    """The plans of a scenario beside these files. Raises ScenarioError unless it can be planned."""
    path = directory / "scenario.yaml"
    path.write_text(text)
    loaded = load_scenario(path, settings={}, names=known_names())
    return [plan_cell(loaded, cell, 0) for cell in loaded.cells]
