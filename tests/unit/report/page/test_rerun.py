"""The command on a page repeats the run: its cell alone, with the targets that were drawn."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from chaos.cli.commands.run import command
from chaos.report.page.rerun import rerun_command
from chaos.report.result import Result
from tests.kit.runs.good_run import GoodRun
from tests.unit.report.page.conftest import ResultOf


@pytest.fixture
def result(run: GoodRun, result_of_run: ResultOf) -> Result:
    return result_of_run(run)


def made_by(result: Result, *words: str, cell: str = "", seeds: tuple[int | None, ...] = ()) -> Result:
    """Return the result as if that command had made it, with a fault for each seed."""
    faults = [{"id": f"fault-{number}", "seed": seed} for number, seed in enumerate(seeds)]
    plan = {**result.plan, "faults": faults}
    return replace(result, cell=cell, plan=plan, made=replace(result.made, command=words))


def parsed(text: str) -> dict[str, object]:
    """Return the options that the command line sees."""
    program, name, *words = shlex.split(text)
    assert (program, name) == ("chaos", "run")
    return command.make_context(name, words).params


def test_a_call_that_repeats_the_run_already_stays_as_it_is(result: Result) -> None:
    words = ("chaos", "run", "my file.yaml", "--cell", "victim=1", "--seed=7")
    assert shlex.split(rerun_command(made_by(result, *words, cell="victim=1", seeds=(7,)))) == [*words]


def test_of_several_cells_it_runs_the_one_of_the_page(result: Result) -> None:
    options = parsed(rerun_command(made_by(result, "chaos", "run", "kill.yaml", cell="victim=1")))
    assert (options["scenarios"], options["cells"], options["seed"]) == (("kill.yaml",), ("victim=1",), None)


def test_the_targets_that_were_drawn_are_drawn_again(result: Result) -> None:
    options = parsed(rerun_command(made_by(result, "chaos", "run", "kill.yaml", seeds=(None, 41, 42))))
    assert options["seed"] == 41


def test_a_seed_of_the_scenario_is_not_taken_for_one_that_was_drawn(result: Result) -> None:
    assert parsed(rerun_command(made_by(result, "chaos", "run", "kill.yaml", seeds=(5, 41))))["seed"] is None


def test_a_run_that_no_command_has_made_has_none(result: Result) -> None:
    assert rerun_command(replace(result, made=replace(result.made, command=None))) == ""
