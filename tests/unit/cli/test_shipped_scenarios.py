"""The scenarios that are shipped: valid, and completed by editors through the schema beside them."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from chaos.cli.main import entry
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.find import iter_scenarios
from chaos.scenario.load import load_scenario
from chaos.scenario.schema import scenario_schema
from tests.kit.shipped import SHIPPED, shipped


def test_the_schema_beside_the_scenarios_is_what_chaos_schema_prints() -> None:
    shipped = json.loads((SHIPPED / "scenario.schema.json").read_text("utf-8"))
    assert shipped == scenario_schema(known_names()), "run: chaos schema > scenarios/scenario.schema.json"


def test_the_examples_in_the_help_fit_the_shipped_scenarios(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SHIPPED.parent)
    helps = ["--help", "run --help", "plan --help"]
    assert [entry(arguments.split()) for arguments in helps] == [0, 0, 0]
    examples = re.findall(r"chaos (?:run|plan) ([a-z0-9-]+\.yaml(?: --(?:cell|set) \S+)?)", capsys.readouterr().out)
    assert len(examples) > 4
    for arguments in examples:
        assert entry(["plan", *arguments.split()]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("path", iter_scenarios([SHIPPED]), ids=lambda path: path.name)
def test_every_shipped_scenario_names_the_schema_and_can_be_planned(path: Path) -> None:
    (schema,) = re.findall(r"\A# yaml-language-server: \$schema=(\S+)\n", path.read_text("utf-8"))
    assert (path.parent / schema).resolve() == SHIPPED / "scenario.schema.json"
    assert shipped(path.stem) == path
    loaded = load_scenario(path, names=known_names())
    for cell in loaded.cells:
        assert plan_cell(loaded, cell, draw_seed=1).identity.scenario == cell.scenario.name


@pytest.mark.parametrize("name", ["kill-rank", "plain-kill-rank"])
def test_the_killed_rank_is_a_variable_of_one_unnamed_cell(name: str) -> None:
    lost = {}
    for victim in (None, 1, 2, 3):
        setting = {} if victim is None else {"victim": str(victim)}
        loaded = load_scenario(shipped(name), settings=setting, names=known_names())
        (cell,) = loaded.cells
        plan = plan_cell(loaded, cell, draw_seed=1)
        lost[victim] = [fault.ranks for fault in plan.faults]
        assert cell.name == ""
        assert plan.checkpoint is not None
        assert plan.checkpoint.savers == (0,)
    assert lost == {None: [(2,)], 1: [(1,)], 2: [(2,)], 3: [(3,)]}


def test_nobody_saves_once_the_rank_with_the_controller_is_lost() -> None:
    loaded = load_scenario(shipped("kill-rank"), settings={"victim": "0"}, names=known_names())
    with pytest.raises(ScenarioError, match="rank 0 hosts the MindIO TFT controller and is lost"):
        plan_cell(loaded, loaded.cells[0], draw_seed=1)


def test_of_the_cells_of_a_scenario_some_run_every_day_and_those_of_the_night_are_there() -> None:
    for name, night in runpy.run_path(str(SHIPPED / "conftest.py"))["NIGHTLY"].items():
        cells = {cell.name for cell in load_scenario(shipped(name), names=known_names()).cells}
        assert set(night) < cells, name
