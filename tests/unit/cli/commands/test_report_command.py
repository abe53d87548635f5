"""`chaos report`: the page of a run, its trace, and the index of a directory of runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.report.analyze import analyze
from tests.kit.runs.good_run import good_run
from tests.unit.cli.kit import Ended

Call = Callable[..., Ended]


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    reports = tmp_path / "reports"
    analyze(good_run().write(reports / "kill-rank-1"))
    (reports / "kill-rank-1" / "run.json").write_text("{}")
    (reports / "latest").symlink_to("kill-rank-1")
    return reports


def test_the_last_run_gets_its_page(chaos: Call, reports: Path) -> None:
    ended = chaos("report", "--reports", str(reports))
    page = reports / "kill-rank-1" / "report.html"
    assert (ended.code, ended.out.strip()) == (0, str(page)), ended.err
    assert "kill-rank" in page.read_text("utf-8")


def test_the_same_run_gives_the_same_page_anywhere(chaos: Call, reports: Path, tmp_path: Path) -> None:
    copy = good_run().write(tmp_path / "elsewhere" / "kill-rank-1")
    (copy / "run.json").write_text("{}")
    chaos("report", "kill-rank-1", "--reports", str(reports))
    chaos("report", str(copy))
    assert (copy / "report.html").read_bytes() == (reports / "kill-rank-1" / "report.html").read_bytes()


def test_a_trace_is_written_where_it_is_asked_for(chaos: Call, reports: Path, tmp_path: Path) -> None:
    ended = chaos("report", "kill-rank-1", "--reports", str(reports), "--trace", str(tmp_path / "trace.json"))
    assert ended.code == 0, ended.err
    assert json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]


def test_a_directory_of_runs_gets_an_index(chaos: Call, reports: Path) -> None:
    chaos("report", "--reports", str(reports))
    ended = chaos("report", str(reports))
    assert (ended.code, ended.out.strip()) == (0, str(reports / "index.html")), ended.err
    index = (reports / "index.html").read_text("utf-8")
    assert 'href="kill-rank-1/report.html"' in index
    assert "<li>hang</li>" in index, "a kind that no run has shown is listed"


def test_a_page_that_cannot_be_written_is_told(chaos: Call, reports: Path, tmp_path: Path) -> None:
    (reports / "kill-rank-1" / "report.html").mkdir()
    ended = chaos("report", "--reports", str(reports))
    assert ended.code == 3
    assert f"the page cannot be written to {reports / 'kill-rank-1'}: Is a directory" in ended.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["none"], "no run 'none'"),
        (["."], "neither a run nor a directory of runs"),
        (["kill-rank-1", "kill-rank-1", "--trace", "t.json"], "--trace takes one run"),
    ],
)
def test_bad_usage_says_what_to_give(
    chaos: Call, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = chaos("report", *words, "--reports", str(reports))
    assert ended.code == 64
    assert text in ended.err
