"""What bad input has found, each in its smallest form, so that it is found at once the next time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest

from chaos.cli import codes
from chaos.cli.main import entry
from chaos.heal.heal import heal_run
from chaos.history.jsonl import decode
from chaos.history.ledger import Ledger, UndoStep
from chaos.history.reader import MAX_BYTES, MAX_PROBLEMS, read_history
from chaos.observe.checkpoints.norm_record import NormRecordError, read_norm_record
from chaos.observe.logs.losses.loss_columns import LossScanner
from chaos.observe.logs.reader import built_in_readers, read_log
from chaos.plan.io import PlanFormatError, dumps, loads
from chaos.report.analyze import analyze
from chaos.report.result_file import ResultUnreadable, read_result
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from chaos.scenario.models.duration import parse_duration
from chaos.soak.soak import SoakRecord
from chaos.store.directory import RunDirectoryError, read_run
from chaos.store.ownership import is_live, read_owner
from tests.kit.growing_cost import MOST_GROWTH, TIMES, growth
from tests.kit.runs.good_run import GoodRun, good_run
from tests.kit.runs.proved_run import prove

pytestmark = pytest.mark.processes

DEEP = b"[" * 15_000
IDENTITY = {"run": "r-20260101-000000-abcd", "token": "r-20260101-000000-abcd-0123456789abcdef"}


@pytest.fixture
def run() -> GoodRun:
    return good_run()


def analyzed(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = entry(["analyze", str(run_dir)])
    captured = capsys.readouterr()
    assert "the harness itself failed" not in captured.err
    return code, captured.out + captured.err


def test_json_that_is_nested_without_end(tmp_path: Path) -> None:
    for name in ("run.json", "result.json", "soak.jsonl"):
        (tmp_path / name).write_bytes(b'{"a":' + DEEP + b"\n")
    with pytest.raises(RunDirectoryError, match="nested too deeply"):
        read_run(tmp_path)
    with pytest.raises(ResultUnreadable, match="nested too deeply"):
        read_result(tmp_path)
    assert SoakRecord(tmp_path / "soak.jsonl").runs() == []
    with pytest.raises(ValueError, match="nested too deeply"):
        decode(b'{"a":' + b"[" * 100 + b"]" * 100 + b"}")


def test_a_small_line_cannot_hold_much(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="objects and lists"):
        decode(b'{"a":[' + b"[]," * 300_000 + b"[]]}")


def test_whole_numbers_without_end(tmp_path: Path) -> None:
    (tmp_path / "norms.json").write_text('{"5": [1' + "0" * 400 + "]}")
    with pytest.raises(NormRecordError, match="401 digits"):
        read_norm_record(tmp_path / "norms.json")
    with pytest.raises(ValueError, match="401 digits"):
        decode(b'{"cost": 1' + b"0" * 400 + b"}")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_plan_with_a_number_that_json_has_not(run: GoodRun, number: str) -> None:
    text = dumps(run.plan).replace('"loss_tolerance": 0.0', f'"loss_tolerance": {number}')
    with pytest.raises(PlanFormatError, match=r"is not JSON|too large"):
        loads(text)


@pytest.mark.parametrize(
    "change",
    [
        {"verdict": "good"},
        {"verdict": []},
        {"scenario": 5},
        {"plan": {"faults": [5]}},
        {"simulated": [{"part": "x"}]},
        {"agent": {"hooks_us": "x"}},
        {"versions": []},
        {"checks": [{"name": [], "verdict": "pass", "expected": "", "seen": "", "where": []}]},
        {"recovery": {"mechanism": None, "phases": {"save": []}, "total": None, "reason": ""}},
        {"not_checked": [5]},
    ],
)
def test_a_result_with_values_of_other_types(run: GoodRun, tmp_path: Path, change: dict[str, Any]) -> None:
    analyze(run.write(tmp_path))
    result = json.loads((tmp_path / "result.json").read_bytes())
    (tmp_path / "result.json").write_text(json.dumps({**result, **change}))
    with pytest.raises(ResultUnreadable, match="not a result of this version"):
        read_result(tmp_path)


def test_a_soak_record_with_values_of_other_types(tmp_path: Path) -> None:
    run = {"cell": "", "code": "x", "verdict": "pass", "run": "r", "started": 1.0, "seconds": 1.0, "load": 1.0}
    lines = [{**run, "scenario": "s"}, {**run, "scenario": []}, {**run, "scenario": "s", "verdict": []}]
    (tmp_path / "soak.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [one.scenario for one in SoakRecord(tmp_path / "soak.jsonl").runs()] == ["s"]


@pytest.mark.parametrize(
    "facts", [{"versions": 5}, {"simulated": 5}, {"simulated": [5, {"part": 1}]}, {"versions": [1]}]
)
def test_a_run_file_with_values_of_other_types(run: GoodRun, tmp_path: Path, facts: dict[str, Any]) -> None:
    directory = run.write(tmp_path)
    (directory / "run.json").write_text(json.dumps(facts))
    result = analyze(directory)
    assert (result.verdict, result.versions, result.simulated) == ("pass", {}, ())


def spoil_evidence(run: GoodRun) -> None:
    run.only("fault.landed")["evidence"] = 5


def spoil_step(run: GoodRun) -> None:
    next(run.events("step.end", rank=2))["step"] = None


def spoil_cost(run: GoodRun) -> None:
    next(run.events("agent.cost"))["hooks_us_median"] = 10**400


def spoil_clock(run: GoodRun) -> None:
    next(run.events("train.end"))["mono"] = 10**30


@pytest.mark.parametrize("spoil", [spoil_evidence, spoil_step, spoil_cost, spoil_clock])
def test_events_with_values_of_other_types(
    run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Callable[[GoodRun], None]
) -> None:
    spoil(run)
    code, _ = analyzed(run.write(tmp_path), capsys)
    assert code in (codes.FAIL, codes.UNKNOWN)


@pytest.mark.parametrize("name", ["plan.json", "run.json", "history", "baseline", "baseline/history", "logs", "job"])
def test_a_link_in_a_run_is_refused_and_named(
    run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    directory = run.write(tmp_path / "run")
    (directory / name).rename(tmp_path / "elsewhere")
    (directory / name).symlink_to(tmp_path / "elsewhere")
    code, text = analyzed(directory, capsys)
    assert code == codes.USAGE
    assert name in text and "is a link" in text


def test_a_log_that_is_a_link_is_no_log_without_lines(run: GoodRun, tmp_path: Path) -> None:
    directory = run.write(tmp_path / "run")
    (log,) = (directory / "logs" / "train" / "ttp").iterdir()
    log.rename(tmp_path / "elsewhere")
    log.symlink_to(tmp_path / "elsewhere")
    result = analyze(directory)
    assert result.verdict == "unknown"
    assert any("it is a link" in check.seen for check in result.checks)


def test_a_path_that_was_recorded_leads_out_of_the_run_by_no_link(run: GoodRun, tmp_path: Path) -> None:
    directory = run.write(tmp_path / "run")
    checkpoints = directory / "job" / "checkpoints"
    checkpoints.rename(tmp_path / "elsewhere")
    checkpoints.symlink_to(tmp_path / "elsewhere")
    assert analyze(directory).verdict != "pass"


@pytest.mark.parametrize("name", ["plan.json", "history/harness.jsonl", "undo.jsonl", "logs/train/ttp/ttp_log.log.1"])
def test_a_pipe_in_a_run_does_not_block(
    run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    directory = run.write(tmp_path)
    (directory / name).unlink(missing_ok=True)
    os.mkfifo(directory / name)
    code, text = analyzed(directory, capsys)
    assert code in (codes.USAGE, codes.UNKNOWN), text
    assert "not a" in text


def test_a_report_that_cannot_be_written(run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = run.write(tmp_path)
    (directory / "result.json").mkdir()
    code, text = analyzed(directory, capsys)
    assert code == codes.HARNESS
    assert "cannot be written" in text and "result.json" in text


def test_a_plan_of_more_ranks_than_can_be_judged(
    run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run.replan(ranks=10**15)
    code, text = analyzed(run.write(tmp_path), capsys)
    assert code == codes.USAGE
    assert "16384 is the limit" in text


def test_a_lock_that_is_a_pipe_blocks_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    assert read_owner(tmp_path) is None
    assert not is_live(tmp_path)


def test_heal_writes_through_no_link(tmp_path: Path) -> None:
    run_dir, outside = tmp_path / "run", tmp_path / "outside"
    run_dir.mkdir()
    outside.mkdir()
    (run_dir / "history").symlink_to(outside)
    prove(run_dir, IDENTITY).record(UndoStep("a", None, "note-kept", {"path": str(run_dir / "lost")}))
    report = heal_run(run_dir)
    assert any("is a link" in text for text in report.failed)
    assert list(outside.iterdir()) == []


def test_a_ledger_of_one_torn_line_is_cut_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its begin is looked for by blocks, from its end: by bytes it would be 5,000,000 reads."""
    path, asked = tmp_path / "undo.jsonl", list[int]()
    path.write_bytes(b"x" * 5_000_000)

    def pread(descriptor: int, size: int, offset: int, read: Callable[..., bytes] = os.pread) -> bytes:
        asked.append(size)
        return read(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", pread)
    Ledger(path).record(UndoStep("a", None, "note-kept", {}))
    assert 1 < len(asked) < 100
    assert sum(asked) == 5_000_000, "no byte is read twice"
    assert [step.id for step in Ledger(path).read().steps] == ["a"]


def test_a_close_of_a_step_that_is_no_text_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "undo.jsonl"
    path.write_text('{"record": "close", "id": ["a"], "outcome": "done"}\n')
    (problem,) = Ledger(path).read().problems
    assert problem == "undo.jsonl:1: not an undo record: neither a step nor a close"


def test_a_step_after_a_damaged_part_of_a_ledger_is_found_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "undo.jsonl"
    path.write_bytes(b"x\n" * 1000)
    ledger = Ledger(path)
    ledger.record(UndoStep("a", None, "note-kept", {}))
    assert [step.id for step in ledger.open_steps()] == ["a"]
    assert ledger.read().problems[-1] == "undo.jsonl: 900 more lines are no undo records"
    ledger.close("a", "done")
    assert ledger.open_steps() == []


def test_a_file_that_is_no_history_is_left_after_so_many_problems(tmp_path: Path) -> None:
    (tmp_path / "harness.jsonl").write_bytes(b"x\n" * 100_000)
    history = read_history(tmp_path)
    assert len(history.problems) <= MAX_PROBLEMS + 2
    assert "the rest is not looked at" in history.problems[MAX_PROBLEMS].text


def test_a_history_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "harness.jsonl").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    (problem,) = read_history(tmp_path).problems
    assert problem.kind == "unreadable" and "bytes" in problem.text


BOMB = """\
chaos: 1
name: bomb
{matrix}
cluster: {{ranks: {ranks}}}
job: {{steps: 10, protection: [TTP]{job}}}
faults:
{faults}
"""
FAULT = "  - {kind: kill, target: {node: 0}, trigger: {step: 5}}\n"


def loaded(tmp_path: Path, **parts: object) -> None:
    text = BOMB.format(**{"matrix": "", "ranks": 4, "job": "", "faults": FAULT, **parts})
    (tmp_path / "bomb.yaml").write_text(text)
    load_scenario(tmp_path / "bomb.yaml")


def test_more_ranks_than_a_plan_can_hold(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"bomb\.yaml:4:18: 'ranks' must be at most 1,048,576"):
        loaded(tmp_path, ranks=10**12)


def test_more_ranks_in_all_cells_than_can_be_planned(tmp_path: Path) -> None:
    axis = ", ".join(map(str, range(1000)))
    with pytest.raises(ScenarioError, match=r"bomb\.yaml:4:11: the 1000 cells have 131,072,000 ranks in all"):
        loaded(tmp_path, ranks=131_072, matrix=f"matrix: {{s: [{axis}]}}", job=', seed: "${s}"')


def test_more_hits_than_a_plan_can_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bomb.yaml").write_text(BOMB.format(matrix="", ranks=131_072, job="", faults=FAULT * 999))
    assert entry(["validate", str(tmp_path / "bomb.yaml")]) == codes.USAGE
    assert "bomb.yaml:23:18: the faults up to this one hit 2,228,224 ranks in all" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["99999999999999999999h", "9" * 400 + "s", "8785h"])
def test_durations_that_no_clock_can_wait_for(text: str) -> None:
    with pytest.raises(ValueError, match="at most 8784h"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        ("[TTP controller.cpp:1] Init controller success ", "rank:1, world size:1"),
        ("[TTP controller.cpp:1] has no complete data ", "dp:["),
        ("", "Start scheduler process, log file:"),
        ("[PYH ttp_controller.py:70] ", "do action report_a, arg=("),
        ("The total number of ", "timed out node is 1. Timed out node list is: {"),
    ],
    ids=["controller", "dump refused", "scheduler", "action", "nodes"],
)
def test_a_line_that_takes_an_expression_long(tmp_path: Path, begin: str, piece: str) -> None:
    """From each of the pieces these expressions once looked to the line's end: 256 times as long for 16 times."""
    head = "2026-11-21 01:34:29.820321 1344 info [1344]" if begin.startswith("[") else ""
    line, readers = head + begin + piece * (60_000 // len(piece)), built_in_readers(timezone.utc)
    (tmp_path / "worker_0.log").write_text(f"{line}\n")
    assert list(read_log(tmp_path / "worker_0.log", readers)) == []
    for reader in readers:
        short, long = (head + begin + piece * (size // len(piece)) for size in (8_000, 8_000 * TIMES))
        assert growth(reader.read, short, long) < MOST_GROWTH, reader.name


def test_a_line_with_two_losses_is_read_alike_both_ways(tmp_path: Path) -> None:
    begin = (
        "[INFO] 2026-11-21 01:30:06,042 [callback.py:334] print_output_info: { step:[    6/   12], loss:  6.900000, "
    )
    (tmp_path / "worker_0.log").write_text(f"{begin}per_step: 1ms }}\n{begin}loss:  7.100000, per_step: 1ms }}\n")
    slow = read_log(tmp_path / "worker_0.log", built_in_readers(timezone.utc))
    assert [event.fields["loss"] for event in slow] == LossScanner().scan(tmp_path / "worker_0.log").loss.tolist()


def test_a_step_whose_path_is_a_list_stays_open_and_heal_says_so(tmp_path: Path) -> None:
    prove(tmp_path, IDENTITY).record(UndoStep("a", None, "note-kept", {"path": [1]}))
    assert any("does not give an absolute path" in text for text in heal_run(tmp_path).failed)


@pytest.mark.parametrize("command", [["analyze"], ["compare"]])
def test_a_trigger_of_a_plan_that_nobody_has_written(
    run: GoodRun, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    path = run.write(tmp_path / "r")
    plan = json.loads((path / "plan.json").read_bytes())
    plan["mechanism"] = "none"
    plan["faults"][0]["trigger"] = {"step": [1], "phase": "forward"}
    (path / "plan.json").write_text(json.dumps(plan))
    code = entry([*command, *[str(path)] * (2 if command == ["compare"] else 1)])
    captured = capsys.readouterr()
    assert code != codes.HARNESS and "the harness itself failed" not in captured.err
