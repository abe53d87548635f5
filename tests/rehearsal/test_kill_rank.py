"""A rank of a real MindSpore job is killed, and the whole path from scenario to verdict holds what it promises."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from chaos.evidence.facts import TRAIN
from tests.rehearsal.kit import Chaos, Done, Run, said

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "result-format.md"
RANKS = range(4)
"""Most that the agent's hooks may take in a step, microseconds, as a median."""

TYPES: dict[str, Any] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "object or null": lambda value: value is None or isinstance(value, dict),
    "list": lambda value: isinstance(value, list),
    "list of objects": lambda value: all(isinstance(one, dict) for one in value),
    "list of integers": lambda value: all(isinstance(one, int) for one in value),
    "list of strings": lambda value: all(isinstance(one, str) for one in value),
    "string or null": lambda value: value is None or isinstance(value, str),
    "number": lambda value: isinstance(value, (int, float)),
    "number or null": lambda value: value is None or isinstance(value, (int, float)),
    "integer or null": lambda value: value is None or type(value) is int,
    "1": lambda value: value == 1,
    "`pass`, `fail`, `unknown`": lambda value: value in ("pass", "fail", "unknown"),
}


def documented(title: str) -> dict[str, str]:
    """The keys that a table of the document lists, each with its type: ``faults[].id`` is ``string``."""
    section = DOCUMENT.read_text("utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+`) \| ([^|]+) \|", section, re.MULTILINE)
    return {key.strip("` "): kind.strip() for keys, kind in rows for key in keys.split(",")}


def values_at(data: Any, key: str) -> list[Any]:
    """Every value that a documented key stands for."""
    values = [data]
    for part in key.split("."):
        name, is_list, _ = part.partition("[]")
        values = [value[name] for value in values if value is not None]
        if is_list:
            values = [one for value in values for one in value]
    return values


def test_a_rank_that_is_killed_gives_a_pass(passed: Done) -> None:
    summary = passed.json
    assert (passed.code, summary["verdict"], summary["interrupted"], summary["not_run"]) == (0, "pass", False, [])
    assert {check["verdict"] for check in passed.run.result["checks"]} == {"pass"}
    assert passed.run.left() == []


def test_the_result_has_the_documented_fields_and_no_others(passed: Done) -> None:
    result, table = passed.run.result, documented("result.json")
    assert len(table) > 20
    for key, kind in table.items():
        values = values_at(result, key)
        assert values or key.startswith(("not_checked[]", "pods[]", "first_errors[]", "headline.")), (
            f"{key}: nothing in the result to compare with"
        )
        assert all(TYPES[kind](value) for value in values), f"{key} is not {kind}: {values}"
    for prefix in ("", "faults[].", "checks[].", "recovery."):
        own = {key.removeprefix(prefix) for key in table if key.startswith(prefix)}
        names = {re.split(r"[.[]", key)[0] for key in own}
        for value in values_at(result, prefix.rstrip(".")) if prefix else [result]:
            assert set(value) == names


def test_the_summary_has_the_documented_fields_and_the_result_beside_each_cell(passed: Done) -> None:
    table = documented("summary.json")
    for key, kind in table.items():
        assert all(TYPES[kind](value) for value in values_at(passed.json, key)), key
    assert passed.json["cells"][0]["result"] == passed.run.result


def test_the_evidence_is_the_death_of_that_very_process_at_that_very_point(passed: Done) -> None:
    run = passed.run
    (fault,) = run.result["faults"]
    (evidence,) = fault["evidence"]
    (started,) = run.history.select("agent.start", attempt=TRAIN, rank=2)
    barrier = {"step": 5, "phase": "step.end"}
    assert evidence == {"rank": 2, "pid": started.pid, "signal": 9, "barrier": barrier}
    (exited,) = run.history.select("rank.exit", attempt=TRAIN, rank=2)
    assert (exited.pid, exited.data["signal"], exited.data["code"]) == (started.pid, 9, None)
    own = run.history.select(attempt=TRAIN, rank=2, writer="agent")
    assert own[-1].event == "barrier.reached" and own[-1].data == {"fault": "kill", **barrier}
    launchers = {event.pid for event in run.history.select("launcher.found")}
    assert launchers and started.pid not in launchers


def test_the_survivors_saved_the_step_and_all_ranks_went_on_from_it(passed: Done) -> None:
    run = passed.run
    (file,) = run.path.glob("job/checkpoints/*/*/*.ckpt")
    assert (
        file.relative_to(run.path / "job/checkpoints").as_posix() in run.result["plan"]["checkpoint"]["files"].values()
    )
    assert file.parent.parent.name == "ttp_saved_checkpoints-step_5"
    for rank in RANKS:
        steps = [event.data["step"] for event in run.history.select("step.begin", attempt="resume", rank=rank)]
        assert steps == list(range(6, 13))
    exits = {event.rank: event.data["code"] for event in run.history.select("rank.exit", attempt=TRAIN)}
    assert exits == {0: 1, 1: 1, 2: None, 3: 1}


def test_every_loss_equals_that_of_the_run_without_a_fault(passed: Done) -> None:
    def losses(history: Any) -> dict[tuple[int, int], str]:
        return {(one.rank, one.data["step"]): one.data["loss"] for one in history.select("digest")}

    own, baseline = losses(passed.run.history), losses(passed.run.baseline)
    assert own == baseline
    assert len(set(own.values())) == len(own) == 4 * 12


def test_the_phases_of_the_recovery_add_up_to_the_total(passed: Done) -> None:
    recovery, history = passed.run.result["recovery"], passed.run.history
    names = "detection, stop, save, exit, relaunch, load, compile, first step, caught up"
    assert recovery["mechanism"] == "TTP"
    assert ", ".join(recovery["phases"]) == names
    nanoseconds = [round(seconds * 1e9) for seconds in recovery["phases"].values()]
    assert sum(nanoseconds) == round(recovery["total"] * 1e9)
    # From outside: it lasts at least from the landing to the new launch, and at most from the act to the run's end.
    (injecting,), (landed,) = history.select("fault.injecting"), history.select("fault.landed")
    (relaunch,), (end,) = history.select("attempt.start", attempt="resume"), history.select("run.end")
    assert (relaunch.mono - landed.mono) / 1e9 < recovery["total"] < (end.mono - injecting.mono) / 1e9


def test_the_history_is_whole_and_every_kept_file_is_in_the_run(passed: Done) -> None:
    run = passed.run
    assert run.history.problems == run.baseline.problems == ()
    for name in ("scenario.yaml", "plan.json", "run.json", "undo.jsonl", "junit.xml", "result.json"):
        assert (run.path / name).is_file()
    for attempt in ("train", "resume"):
        logs = run.path / "logs" / attempt
        assert all((logs / f"worker_{rank}.log").stat().st_size for rank in RANKS)
        assert len(list(logs.glob("ttp/ttp_log.log.*"))) == 4
    for check in run.result["checks"]:
        for place in check["where"]:
            assert (run.path / re.sub(r":\d+$", "", place)).exists(), f"{place} of: {said([check])}"


def test_every_process_that_came_to_its_end_says_what_the_agent_cost_it(passed: Done) -> None:
    for history, attempt, steps in ((passed.run.history, "resume", 7), (passed.run.baseline, "train", 12)):
        costs = history.select("agent.cost", attempt=attempt, steps=steps)
        assert sorted(event.rank or 0 for event in costs) == list(RANKS)
        assert all(event.data["hooks_us_median"] > 0 and event.data["digest_us_median"] > 0 for event in costs)


@pytest.mark.nightly  # tests/unit/run/test_driver.py makes a baseline once and copies it every day
def test_a_second_run_takes_the_baseline_from_the_cache(second: Done, passed: Done) -> None:
    assert second.code == 0, second.errors
    run, reports = second.run, second.run.path.parent
    (baseline,) = reports.glob("baseline-*")
    assert run.result["baseline"] == {"wanted": "auto", "run": baseline.name} == passed.run.result["baseline"]
    assert "taken from the cache" in second.errors and "made" in passed.errors
    assert (reports / "latest").resolve() == run.path.resolve()
    assert (reports / "latest").readlink() == Path(run.path.name)
    assert (reports / "summary.json").read_text("utf-8").count(run.path.name) == 2


@pytest.mark.nightly
def test_a_run_can_be_compared_with_a_run_that_is_named(chaos: Chaos) -> None:
    (baseline,) = chaos.runs()
    for pointer in chaos.reports.glob(".baselines/*.txt"):
        pointer.unlink()
    done = chaos.run("kill-rank.yaml", "--baseline", baseline.path.name)
    assert done.code == 0, done.errors
    assert done.run.result["baseline"] == {"wanted": baseline.path.name, "run": baseline.path.name}
    assert [exclusion["name"] for exclusion in done.run.result["not_checked"]] == ["hygiene"]


@pytest.mark.nightly
def test_without_a_baseline_what_is_not_checked_is_said(fresh: Chaos) -> None:
    done = fresh.run("kill-rank.yaml", "--baseline", "none")
    assert done.code == 0, done.errors
    assert [run.path for run in fresh.runs()] == [done.run.path]
    assert done.run.result["baseline"] == {"wanted": "none", "run": None}
    left = [(exclusion["name"], exclusion["reason"]) for exclusion in done.run.result["not_checked"]]
    assert left[:3] == [(name, "baseline: none") for name in ("checkpoint", "resume", "loss")]
    assert [name for name, _ in left[3:]] == ["hygiene"]


def test_the_verdict_is_the_same_to_the_byte_when_made_elsewhere(copy_of_run: Run, passed: Done, chaos: Chaos) -> None:
    (copy_of_run.path / "result.json").unlink()
    (copy_of_run.path / "junit.xml").unlink()
    assert (
        chaos("analyze", copy_of_run.path, env={"TZ": "Asia/Shanghai", "LC_ALL": "C", "PYTHONHASHSEED": "7"}).code == 0
    )
    for name in ("result.json", "junit.xml"):
        assert (copy_of_run.path / name).read_bytes() == (passed.run.path / name).read_bytes()


def test_the_verdict_needs_neither_mindspore_nor_the_original_nor_the_machine(
    second: Done, chaos: Chaos, tmp_path: Path
) -> None:
    before = (second.run.path / "result.json").read_bytes()
    moved = Run(tmp_path / "moved")
    shutil.move(second.run.path, moved.path)
    try:
        (moved.path / "result.json").unlink()
        done = chaos.analyze(moved, patch="import sys; sys.modules['mindspore'] = sys.modules['mindio_ttp'] = None")
        assert (done.code, (moved.path / "result.json").read_bytes()) == (0, before), done.errors
    finally:
        shutil.move(moved.path, second.run.path)


@pytest.mark.parametrize("file", ["job/data/train-images-idx3-ubyte", "undo.jsonl", "history/harness.jsonl"])
def test_judging_changes_nothing_but_the_reports(copy_of_run: Run, chaos: Chaos, file: str) -> None:
    before = (copy_of_run.path / file).read_bytes()
    names = {path.relative_to(copy_of_run.path) for path in copy_of_run.path.rglob("*")}
    assert chaos.analyze(copy_of_run).code == 0
    assert (copy_of_run.path / file).read_bytes() == before
    assert {path.relative_to(copy_of_run.path) for path in copy_of_run.path.rglob("*")} == names
