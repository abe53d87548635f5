"""A soak counts what was really run, goes on where it was interrupted, and finds runs that do not agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.run.soak import SoakRecord, SoakRun, code_key, key_of_runs, still_to_run, tally

A, B = ("kill-rank", ""), ("uce", "phase=forward")
RUN = SoakRun("kill-rank", "", "c0de", "pass", "kill-rank-1", 1.0, 20.0, 0.5)


@pytest.fixture
def record(tmp_path: Path) -> SoakRecord:
    return SoakRecord(tmp_path / "soak.jsonl")


def test_runs_are_read_back_in_their_order(record: SoakRecord) -> None:
    runs = [RUN, replace(RUN, verdict=None, run=None), replace(RUN, verdict="fail")]
    for run in runs:
        record.append(run)
    assert record.runs() == runs


def test_a_line_that_a_kill_has_torn_costs_only_itself(record: SoakRecord, tmp_path: Path) -> None:
    record.append(RUN)
    with (tmp_path / "soak.jsonl").open("a") as file:
        file.write('{"scenario": "kill-')
    record.append(replace(RUN, verdict="fail"))
    assert [run.verdict for run in record.runs()] == ["pass", "fail"]


@pytest.mark.parametrize("line", ["", "[]", "null", '{"scenario": 1}', "\x00\x00", '{"verdict": "good"}'])
def test_other_lines_do_not_count(record: SoakRecord, tmp_path: Path, line: str) -> None:
    (tmp_path / "soak.jsonl").write_text(line + "\n")
    assert record.runs() == []


def test_a_soak_goes_on_with_the_cells_that_ran_least() -> None:
    assert list(still_to_run([A, B], [], 2)) == [A, B, A, B]
    assert list(still_to_run([A, B], [RUN, RUN], 2)) == [B, B]
    assert list(still_to_run([A, B], [RUN], 2)) == [B, A, B]
    assert list(still_to_run([A], [RUN, RUN, RUN], 2)) == []


def test_runs_that_do_not_agree_are_flaky() -> None:
    same = tally(A, [RUN, RUN], "pass")
    assert (same.good, same.flaky, same.runs) == (True, False, 2)
    mixed = tally(A, [RUN, replace(RUN, verdict="unknown")], "pass")
    assert (mixed.good, mixed.flaky) == (False, True)
    broken = tally(A, [RUN, replace(RUN, verdict=None)], "pass")
    assert (broken.good, broken.flaky, broken.harness_failed) == (False, True, 1)
    finding = tally(A, [replace(RUN, verdict="fail")], "fail")
    assert finding.good and not finding.flaky


def test_a_changed_scenario_or_harness_is_another_code(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one")
    first = code_key("text", tmp_path)
    assert code_key("text", tmp_path) == first != code_key("other", tmp_path)
    (tmp_path / "a.py").write_text("two")
    assert code_key("text", tmp_path) != first


def test_an_edited_file_another_setting_or_another_framework_is_another_code(tmp_path: Path) -> None:
    scenario = tmp_path / "kill-rank.yaml"
    scenario.write_text("one")

    def key(victim: str = "1", mindspore: str = "2.10.0") -> str:
        return key_of_runs(scenario, {"victim": victim}, tmp_path, {"mindspore": mindspore})

    first = key()
    assert len({first, key(victim="2"), key(mindspore="2.7.0")}) == 3
    scenario.write_text("two")
    assert key() != first
