"""A matrix gives one scenario for every combination, in the order of the file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.scenario.errors import Problem
from chaos.scenario.load import LoadedScenario

Problems = Callable[..., list[Problem]]
Load = Callable[..., LoadedScenario]

MATRIX = """\
chaos: 1
name: m
variables: {phase: forward, end: 10}
matrix:
  victim: [1, 2]
  phase: [step.begin, step.end]
cluster: {ranks: 4}
job: {steps: "${end}"}
faults:
- kind: process.kill
  target: {rank: "${victim}"}
  trigger: {step: 1, phase: "${phase}"}
"""


def test_cells_are_the_product_in_file_order(load: Load) -> None:
    cells = load(MATRIX).cells
    assert [cell.name for cell in cells] == [
        "victim=1,phase=step.begin", "victim=1,phase=step.end", "victim=2,phase=step.begin", "victim=2,phase=step.end",
    ]  # fmt: skip
    faults = [cell.scenario.faults[0] for cell in cells]
    assert [(fault.target.rank, fault.trigger.phase) for fault in faults] == [
        (1, "step.begin"), (1, "step.end"), (2, "step.begin"), (2, "step.end"),
    ]  # fmt: skip
    assert cells[3].values == {"phase": "step.end", "end": 10, "victim": 2}


def test_without_a_matrix_there_is_one_cell_without_a_name(load: Load, minimal: str) -> None:
    assert [cell.name for cell in load(minimal).cells] == [""]


def test_a_setting_pins_an_axis(load: Load) -> None:
    cells = load(MATRIX, victim="3").cells
    assert [cell.name for cell in cells] == ["victim=3,phase=step.begin", "victim=3,phase=step.end"]
    assert [cell.scenario.faults[0].target.rank for cell in cells] == [3, 3]


def test_a_problem_of_some_cells_names_the_value_and_of_all_cells_comes_once(problems: Problems) -> None:
    text = MATRIX.replace("[1, 2]", "[1, 9]").replace("ranks: 4", "ranks: 4, nods: 1")
    assert [(p.line, p.column, p.message) for p in problems(text)] == [
        (7, 21, "unknown key 'nods'"),
        (11, 18, "rank 9 of 4: ranks are 0 to 3 (victim=9)"),
    ]


def test_a_problem_away_from_its_variable_names_the_cell(problems: Problems) -> None:
    text = MATRIX.replace("ranks: 4", 'ranks: "${victim}", nodes: 2')
    messages = [p.message for p in problems(text)]
    assert "1 ranks cannot be spread evenly over 2 nodes (in cell victim=1,phase=step.begin)" in messages


@pytest.mark.parametrize(
    ("axis", "labels"),
    [
        ("[true, 'true', 1, '1', ~, 'null', 1.0]", ["true", '"true"', "1", '"1"', "null", '"null"', "1.0"]),
        ("['a,b=c', 'two words', '', a]", ['"a,b=c"', '"two words"', '""', "a"]),
        ("[{rank: 1}, [0, 1]]", ['{"rank":1}', "[0,1]"]),
        (f"[{'x' * 50}, y]", ["#1", "y"]),
    ],
)
def test_cell_names_tell_values_apart(load: Load, minimal: str, axis: str, labels: list[str]) -> None:
    text = minimal + (
        f"matrix: {{v: {axis}}}\nfaults:\n- kind: process.kill\n  target: {{rank: 0}}\n  trigger: {{step: 1}}\n"
        '  parameters: {p: "${v}"}\n'
    )
    assert [cell.name for cell in load(text).cells] == [f"v={label}" for label in labels]


def test_an_axis_can_vary_a_whole_target(load: Load) -> None:
    text = MATRIX.replace("[1, 2]", "[{rank: 1}, {role: controller}]").replace('{rank: "${victim}"}', "${victim}")
    targets = [cell.scenario.faults[0].target for cell in load(text).cells]
    assert [(target.rank, target.role) for target in targets[::2]] == [(1, None), (None, "controller")]


@pytest.mark.parametrize(
    ("change", "line", "column", "message"),
    [
        (("[1, 2]", "[]"), 5, 3, "axis 'victim' must be a list of values; it is empty"),
        (("[1, 2]", "1"), 5, 3, "axis 'victim' must be a list of values"),
        (("[1, 2]", "[1, 2, 1]"), 5, 18, "axis 'victim' has the value 1 twice"),
        (("[1, 2]", "[1, 2]\n  spare: [1]"), 6, 3, "axis 'spare' is never used"),
        (("[1, 2]", f"[{', '.join(map(str, range(6000)))}]"), 4, 1, "the matrix has 12000 cells; 10000 is the limit"),
    ],
)
def test_a_wrong_axis_is_reported(
    problems: Problems, change: tuple[str, str], line: int, column: int, message: str
) -> None:
    found = problems(MATRIX.replace(*change))
    assert [(p.line, p.column, p.message) for p in found] == [(line, column, message)]


def test_an_astronomic_matrix_is_refused_at_once(problems: Problems, minimal: str) -> None:
    axes = "\n".join(f"  a{n}: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]" for n in range(5000))
    uses = "".join(f"${{a{n}}}" for n in range(5000))
    found = problems(minimal + f"matrix:\n{axes}\ndescription: {uses}\n")
    assert [p.message for p in found] == ["the matrix has far too many cells; 10000 is the limit"]


def test_sections_that_no_axis_touches_are_shared(load: Load) -> None:
    cells = load(MATRIX).cells
    assert len({id(cell.scenario.cluster) for cell in cells}) == 1
    assert len({id(cell.scenario.faults) for cell in cells}) == 4
