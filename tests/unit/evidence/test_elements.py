"""The first element that differs is named where files hold both states, and it is said where only digests exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from chaos.checks.judge import judge
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.elements import MOST_STATEMENTS, with_elements
from chaos.evidence.finding import Finding
from chaos.evidence.statement_data import SAVED, StatementData, about
from chaos.observe.checkpoints.element import first_difference
from chaos.report.analyze import result_of
from chaos.report.element import ONLY_DIGESTS, element_of
from chaos.report.page.facts import statement_facts
from chaos.report.short import MOST_LINES, short_lines
from tests.kit.runs.good_run import Saved, State, state_after
from tests.kit.runs.restored_run import restored_run
from tests.unit.observe.mindformers_files import safetensors_of

NAME = "layer1.weight"


def changed(state: State) -> State:
    weight = state[NAME].copy()
    weight[1, 2:] = 0.1
    return {**state, NAME: weight}


def files(directory: Path) -> tuple[Artifacts, StatementData]:
    """Two ranks' files of one step, in which one parameter differs."""
    paths = [directory / "job" / f"rank_{rank}.ckpt" for rank in (0, 2)]
    paths[0].parent.mkdir()
    for path, state in zip(paths, (state_after(0, 5), changed(state_after(2, 5))), strict=True):
        path.write_bytes(Saved(path.name, state, {"step_num": 5}).content())
    artifacts = Artifacts(directory, None)
    digests = [artifacts.read_checkpoint(path).digests[NAME] for path in paths]
    return artifacts, about(2, parameters=(NAME, "x"), quantity=SAVED, expected=digests[0], seen=digests[1])


def test_the_first_element_is_named_with_both_values(tmp_path: Path) -> None:
    artifacts, data = files(tmp_path)
    (finding,) = with_elements([Finding("checkpoint", "fail", "equal", "differ", data=data)], artifacts)
    answer = finding.data
    assert (answer.element, answer.value_expected, answer.value_seen) == ("[1, 2]", 4.95, 0.1)
    assert (answer.expected, answer.seen) == (data.expected, data.seen)
    assert element_of(answer) == "layer1.weight[1, 2]: 4.95 expected, 0.1 seen"


def test_without_a_file_of_both_states_it_is_said_that_only_digests_exist(tmp_path: Path) -> None:
    artifacts, data = files(tmp_path)
    (tmp_path / "job" / "rank_0.ckpt").unlink()
    (finding,) = with_elements([Finding("checkpoint", "fail", "equal", "differ", data=data)], artifacts)
    assert finding.data == data and element_of(data) == ONLY_DIGESTS
    assert ("first element that differs", ONLY_DIGESTS) in list(statement_facts(data))
    assert element_of(about(1, parameters=(NAME,), quantity=SAVED)) is None


def test_files_are_read_again_for_some_statements_only(tmp_path: Path) -> None:
    artifacts, data = files(tmp_path)
    passing, failing = (Finding("checkpoint", verdict, "equal", "differ", data=data) for verdict in ("pass", "fail"))
    answer = with_elements([passing, *[failing] * (MOST_STATEMENTS + 1)], artifacts)
    assert [finding.data.element for finding in answer] == [None, *["[1, 2]"] * MOST_STATEMENTS, None]


@pytest.mark.parametrize(
    ("kind", "shape", "one", "other", "expected"),
    [
        ("BF16", (3,), np.array([0, 0, 0x3F80], "<u2"), np.array([0, 0, 0x4000], "<u2"), ((2,), 1.0, 2.0)),
        ("F32", (), np.array([0.1], "<f4"), np.array([0.3], "<f4"), ((), 0.1, 0.3)),
        ("I64", (2, 1), np.array([1, 7], "<i8"), np.array([1, -7], "<i8"), ((1, 0), 7, -7)),
    ],
)
def test_a_value_is_that_of_its_type(
    tmp_path: Path, kind: str, shape: tuple[int, ...], one: NDArray[Any], other: NDArray[Any], expected: object
) -> None:
    for name, array in (("one", one), ("other", other)):
        (tmp_path / name).write_bytes(safetensors_of([("w", kind, shape, array.tobytes())]))
    difference = first_difference(tmp_path / "one", tmp_path / "other", "w")
    assert difference is not None
    assert (difference.index, difference.expected, difference.seen) == expected
    assert first_difference(tmp_path / "one", tmp_path / "one", "w") is None
    assert first_difference(tmp_path / "one", tmp_path / "other", "x") is None


def test_a_parameter_changed_by_hand_leads_to_its_file_and_value(tmp_path: Path) -> None:
    run = restored_run()
    run.saved[1].state = changed(run.saved[1].state)
    path = run.write(tmp_path / "run")
    result = result_of(path, judge(path))
    entries = [check.data for check in result.checks if check.verdict == "fail" and check.data.quantity == SAVED]
    assert entries and {(data.file, data.parameters) for data in entries} == {(entries[0].file, (NAME,))}
    assert element_of(entries[0]) == "layer1.weight[1, 2]: 5.95 expected, 0.1 seen", "rank 3 has saved the same"
    lines = short_lines(result, path)
    assert any(line == f"  element   {element_of(entries[0])}" for line in lines) and len(lines) <= MOST_LINES
