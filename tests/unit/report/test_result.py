"""result.json: the documented keys, the same bytes anywhere, never half a file."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.report import files
from chaos.report.analyze import analyze
from chaos.report.result import from_json
from chaos.report.result_file import ResultUnreadable, read_result
from chaos.store.directory import unfinished_files
from tests.kit.runs.good_run import SAVED, GoodRun, good_run


@pytest.fixture
def run() -> GoodRun:
    return good_run()


def test_result_has_the_documented_keys_in_order(run: GoodRun, tmp_path: Path) -> None:
    analyze(run.write(tmp_path))
    data = json.loads((tmp_path / "result.json").read_text("utf-8"))
    assert list(data) == [
        "schema_version",
        "scenario",
        "cell",
        "seed",
        "verdict",
        "reason",
        "headline",
        "plan",
        "faults",
        "checks",
        "recovery",
        "baseline",
        "versions",
        "simulated",
        "not_checked",
        "agent",
        "clocks",
        "pods",
        "first_errors",
        "made",
    ]
    assert data["schema_version"] == 1
    assert data["verdict"] == "pass"
    assert data["faults"] == [
        {
            "id": "kill-1",
            "kind": "kill",
            "ranks": [2],
            "evidence": [{"rank": 2, "pid": 1002, "signal": 9, "barrier": {"step": SAVED, "phase": "step.end"}}],
            "healed": True,
        }
    ]
    assert data["baseline"] == {"wanted": "auto", "run": "b1"}
    assert data["versions"] == {"chaos": "0.1.0"}
    assert data["simulated"] == [{"part": "all-reduce", "layer": "communicator"}]
    assert set(data["checks"][0]) == {"name", "verdict", "expected", "seen", "data", "where", "by_log", "order"}


def test_phases_are_seconds_and_add_up_to_the_total(run: GoodRun, tmp_path: Path) -> None:
    recovery = analyze(run.write(tmp_path)).recovery
    assert recovery.mechanism == "TTP"
    assert list(recovery.phases) == [
        "detection",
        "stop",
        "save",
        "exit",
        "relaunch",
        "load",
        "compile",
        "first step",
        "caught up",
    ]
    seconds = [value for value in recovery.phases.values() if value is not None]
    assert len(seconds) == 9
    assert sum(seconds) == pytest.approx(11.83, abs=1e-9)
    assert recovery.total == pytest.approx(11.83, abs=1e-9)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
def test_a_copy_elsewhere_gives_the_same_bytes(
    run: GoodRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    run.saved[0].flip = 200
    here = run.write(tmp_path / "here")
    analyze(here)
    first = [(here / name).read_bytes() for name in ("result.json", "junit.xml")]
    analyze(here)
    assert [(here / name).read_bytes() for name in ("result.json", "junit.xml")] == first
    there = tmp_path / "a" / "longer" / "way"
    shutil.copytree(here, there)
    for name in ("result.json", "junit.xml"):
        (there / name).unlink()
    monkeypatch.setenv("TZ", zone)
    analyze(there)
    assert [(there / name).read_bytes() for name in ("result.json", "junit.xml")] == first


def test_result_holds_no_absolute_path(run: GoodRun, tmp_path: Path) -> None:
    run.replan(source="/home/somebody/kill-rank.yaml", baseline="/home/somebody/reports/b1")
    run.saved[0].keep = 40
    del run.others["undo.jsonl"]
    directory = run.write(tmp_path)
    (directory / "undo.jsonl").symlink_to("/nowhere/undo.jsonl")
    analyze(directory)
    text = (directory / "result.json").read_text("utf-8")
    assert str(tmp_path) not in text
    assert "/home/somebody" not in text
    assert '"source": "kill-rank.yaml"' in text


def test_evidence_that_utf_8_cannot_hold_is_kept(run: GoodRun, tmp_path: Path) -> None:
    run.only("fault.landed")["evidence"][0]["note"] = "half \ud83d"
    result = analyze(run.write(tmp_path))
    assert read_result(tmp_path) == result
    assert result.faults[0].evidence[0]["note"] == "half \ud83d"


def test_reading_gives_back_what_was_written(run: GoodRun, tmp_path: Path) -> None:
    result = analyze(run.write(tmp_path))
    assert read_result(tmp_path) == result
    assert from_json(result.to_json()) == result


def test_a_headline_is_read_back_and_a_result_of_an_earlier_version_has_none(run: GoodRun, tmp_path: Path) -> None:
    del run.saved[1]
    result = analyze(run.write(tmp_path))
    assert result.headline is not None and read_result(tmp_path) == result
    data = json.loads((tmp_path / "result.json").read_text("utf-8"))
    del data["headline"]
    (tmp_path / "result.json").write_text(json.dumps(data))
    assert read_result(tmp_path) == replace(result, headline=None)
    (tmp_path / "result.json").write_text(json.dumps({**data, "headline": {"id": 1, "check": "x", "text": "y"}}))
    with pytest.raises(ResultUnreadable, match="not a result of this version"):
        read_result(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ("{", "not a result of this version"),
        ("[]", "not a result of this version"),
    ],
)
def test_what_is_no_result_is_refused_with_what_to_do(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "result.json").write_text(content)
    with pytest.raises(ResultUnreadable, match=said) as caught:
        read_result(tmp_path)
    assert "chaos analyze" in str(caught.value)


def test_analyze_can_leave_the_run_untouched(run: GoodRun, tmp_path: Path) -> None:
    analyze(run.write(tmp_path), write=False)
    assert not (tmp_path / "result.json").exists()
    assert not (tmp_path / "junit.xml").exists()


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b"old")

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        files.replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_sigkill_leaves_of_a_report_is_known_to_heal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "replace", lambda *_: None)  # it does not come to that
    files.replace_file(tmp_path / "result.json", b"new")
    (left,) = tmp_path.iterdir()
    assert unfinished_files(tmp_path) == [left] and left.read_bytes() == b"new"


def test_without_run_json_the_verdict_stands(run: GoodRun, tmp_path: Path) -> None:
    directory = run.write(tmp_path)
    (directory / "run.json").write_text("not json")
    result = analyze(directory)
    assert result.verdict == "pass"
    assert result.versions == {}
