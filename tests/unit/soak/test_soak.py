"""A soak counts what was really run, goes on where it was interrupted, and finds runs that do not agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.run.made_with import code_key
from chaos.scenario.load import load_scenario
from chaos.soak.soak import (
    Keys,
    SoakRecord,
    SoakRun,
    key_of_runs,
    keys_of_cells,
    still_to_run,
    tally,
    tally_with_finding,
)
from tests.unit.cli.kit import SCENARIO

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
    same = tally(A, [RUN, RUN])
    assert (same.good, same.flaky, same.runs) == (True, False, 2)
    mixed = tally(A, [RUN, replace(RUN, verdict="unknown")])
    assert (mixed.good, mixed.flaky) == (False, True)
    broken = tally(A, [RUN, replace(RUN, verdict=None)])
    assert (broken.good, broken.flaky, broken.harness_failed) == (False, True, 1)
    assert not tally(A, []).good
    finding = tally(A, [replace(RUN, verdict="fail", failing="loss")], ["loss"])
    assert finding.good and not finding.flaky


def test_a_finding_that_fails_in_another_check_is_flaky() -> None:
    first = replace(RUN, verdict="fail", failing="loss resume")
    same = tally(A, [first, first], ["loss", "resume"])
    assert (same.good, same.flaky, same.failing) == (True, False, ("loss resume",))
    other = tally(A, [first, replace(first, failing="hygiene")], ["loss", "resume", "hygiene"])
    assert (other.good, other.flaky, other.failing) == (False, True, ("hygiene", "loss resume"))


@pytest.mark.parametrize(("failing", "others"), [("hygiene loss", ("hygiene",)), ("", ("no check",)), ("loss", ())])
def test_a_finding_that_fails_in_a_check_which_it_does_not_name_is_bad(failing: str, others: tuple[str, ...]) -> None:
    run = replace(RUN, verdict="fail", failing=failing)
    found = tally(A, [run, run], ["loss", "resume"])
    assert (found.unexpected, found.good, found.flaky) == (others, not others, False)


def test_a_finding_that_shows_now_and_then_is_good_in_both_ways() -> None:
    shows = replace(RUN, verdict="fail", failing="recovery")
    for runs in ([RUN, shows], [RUN, RUN], [shows, shows]):
        found = tally(A, runs, ["recovery"], now_and_then=True)
        assert (found.good, found.flaky) == (True, False)
    other = tally(A, [RUN, replace(shows, failing="loss")], ["recovery"], now_and_then=True)
    assert (other.good, other.unexpected) == (False, ("loss",))
    unknown = tally(A, [RUN, replace(RUN, verdict="unknown")], ["recovery"], now_and_then=True)
    assert (unknown.good, unknown.flaky) == (False, True)


@pytest.mark.parametrize(
    ("sdk", "verdict", "good"),
    [("vendor", "fail", True), ("vendor", "pass", False), ("standin", "fail", False), ("standin", "pass", True)],
)
def test_a_finding_of_one_sdk_counts_in_runs_with_it_alone(tmp_path: Path, sdk: str, verdict: str, good: bool) -> None:
    path = tmp_path / "kill-rank.yaml"
    path.write_text(f"{SCENARIO}finding: {{id: F-10, sdk: vendor}}\nfailing: [loss]\n")
    run = replace(RUN, verdict=verdict, failing="loss" if verdict == "fail" else "", sdk=sdk)
    assert tally_with_finding(load_scenario(path).cells[0].scenario, A, [run, run]).good == good


@pytest.mark.parametrize(("sdk", "good"), [("vendor", True), ("standin", False)])
def test_what_fails_with_the_vendors_sdk_alone_is_bad_with_the_stand_in(tmp_path: Path, sdk: str, good: bool) -> None:
    path = tmp_path / "kill-rank.yaml"
    path.write_text(f"{SCENARIO}finding: {{id: F-06, with_vendor: [mechanism]}}\nfailing: [loss]\n")
    run = replace(RUN, verdict="fail", failing="mechanism loss", sdk=sdk)
    assert tally_with_finding(load_scenario(path).cells[0].scenario, A, [run, run]).good == good


@pytest.mark.parametrize("name", ["room/config.yaml", "data", "room/a.py"])
def test_every_file_of_the_harness_counts_but_compiled_ones(tmp_path: Path, name: str) -> None:
    (tmp_path / "room" / "__pycache__").mkdir(parents=True)
    first = code_key("text", tmp_path)
    (tmp_path / "room" / "__pycache__" / "a.txt").write_text("x")
    (tmp_path / "room" / "a.pyc").write_text("x")
    assert code_key("text", tmp_path) == first
    (tmp_path / name).write_text("x")
    assert code_key("text", tmp_path) != first
    assert code_key("text", tmp_path, without=[name.split("/")[0]]) == first


def test_a_run_that_a_signature_explains_is_neither_good_nor_bad() -> None:
    signed = replace(RUN, verdict="fail", failing="F-15")
    mixed = tally(A, [RUN, signed, RUN])
    assert mixed.good and not mixed.flaky and mixed.runs == 3
    assert (mixed.verdicts["fail"], mixed.by_signature) == (0, {"F-15": 1})
    assert not tally(A, [signed]).good
    assert not tally(A, [RUN, signed, replace(RUN, verdict="fail", failing="hygiene")]).good
    assert not tally(A, [RUN, replace(RUN, verdict="fail", failing="F-15 hygiene")]).good
    assert not tally(A, [RUN, replace(RUN, verdict="unknown", failing="F-15")]).good
    expected = tally(A, [signed, replace(RUN, verdict="fail", failing="loss")], ["loss"])
    assert expected.good and not expected.unexpected


JOB = """
chaos: 1
name: own-script
cluster: {ranks: 2, parallel: {data_parallel: 2}}
job: {kind: mindspore, script: train.py, steps: 4, arguments: [--data, DATA]}
expect: {mechanism: none}
"""


def test_the_jobs_own_script_is_in_the_key_and_its_data_as_they_look(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    data, script, path = tmp_path / "data.bin", tmp_path / "train.py", tmp_path / "own-script.yaml"
    data.write_text("one")
    script.write_text("one")
    path.write_text(JOB.replace("DATA", str(data)))
    loaded = load_scenario(path)

    def keys() -> Keys:
        return keys_of_cells(loaded, loaded.cells, {}, package)

    first = keys()
    assert keys() == first
    data.write_text("another")
    second = keys()
    assert (second.sources, second.of != first.of) == (first.sources, True)
    script.write_text("two")
    third = keys()
    assert third.sources != second.sources and third.of != second.of
    script.unlink()
    assert keys().sources not in (first.sources, third.sources)


def test_an_upgrade_in_the_middle_is_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own-script.yaml"
    path.write_text(JOB)
    loaded = load_scenario(path)
    first = keys_of_cells(loaded, loaded.cells, {}, tmp_path)
    monkeypatch.setattr("chaos.soak.soak.versions", lambda: {"mindspore": "0"})
    assert keys_of_cells(loaded, loaded.cells, {}, tmp_path).sources != first.sources


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
