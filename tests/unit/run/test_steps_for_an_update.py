"""A scenario that does not say how many steps come to one update is planned with what the fault-free run shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.run.accumulation import completed, first_drawn, is_misnumbered
from chaos.run.prepare.prepare import plan_cell
from chaos.scenario.load import Cell, LoadedScenario, load_scenario
from tests.kit.runs.accumulating_run import accumulating
from tests.kit.runs.good_run import GoodRun, good_run

SCENARIO = """\
chaos: 1
name: accumulating
cluster: {{ranks: 4}}
job: {{kind: plain, steps: 12, protection: [TTP]{job}}}
faults:
  - {{kind: kill, target: {target}, trigger: {{step: 7}}}}
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "run"


def loaded(tmp_path: Path, job: str = "", target: str = "{rank: 2}") -> LoadedScenario:
    path = tmp_path / "accumulating.yaml"
    path.write_text(SCENARIO.format(job=job, target=target))
    return load_scenario(path)


def cell_of(tmp_path: Path, job: str = "") -> Cell:
    return loaded(tmp_path, job).cells[0]


def test_the_fault_free_run_shows_it(tmp_path: Path, directory: Path) -> None:
    cell = completed(cell_of(tmp_path), accumulating(good_run(), 3).write(directory))
    assert cell is not None
    assert cell.scenario.job.steps_per_update == 3


@pytest.mark.parametrize(
    ("run", "job"),
    [
        (good_run(), ""),
        (accumulating(good_run(), 3), ", steps_per_update: 2"),
        (GoodRun(), ""),
    ],
    ids=["every step makes an update", "the scenario says it", "nothing was recorded"],
)
def test_nothing_is_filled_in(run: GoodRun, job: str, tmp_path: Path, directory: Path) -> None:
    assert completed(cell_of(tmp_path, job), run.write(directory)) is None


def test_steps_of_a_second_training_in_a_process_were_counted_as_updates(directory: Path) -> None:
    run = accumulating(good_run(), 2)
    assert not is_misnumbered(run.write(directory))
    assert run.baseline is not None
    for records in run.baseline.values():
        records += [{**record, "seq": len(records)} for record in records if record["event"] == "train.begin"]
    assert is_misnumbered(run.write(directory))


@pytest.mark.parametrize(
    ("target", "drawn"),
    [("{random: {count: 1}}", True), ("{random: {count: 1, seed: 9}}", False), ("{rank: 2}", False)],
)
def test_the_same_ranks_are_drawn_for_the_second_plan(target: str, drawn: bool, tmp_path: Path) -> None:
    scenario = loaded(tmp_path, target=target)
    plan = plan_cell(scenario, scenario.cells[0], 41)
    assert first_drawn(scenario.cells[0], plan) == (41 if drawn else None)
