"""What a result looks like to a reader."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from chaos.report.analyze import analyze
from chaos.report.terminal import print_result
from tests.kit.good_run import GoodRun, good_run


@pytest.fixture
def run() -> GoodRun:
    return good_run()


def printed(run: GoodRun, directory: Path, *, terminal: bool = False, width: int = 100) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system="standard" if terminal else None)
    print_result(analyze(run.write(directory)), console)
    return out.getvalue()


def test_a_pass_shows_every_check_and_the_phases_with_budgets(run: GoodRun, tmp_path: Path) -> None:
    text = printed(run, tmp_path)
    assert text.startswith("kill-rank: pass\n")
    assert [line.split()[:2] for line in text.splitlines() if line.startswith("hygiene")] == [["hygiene", "pass"]]
    assert [line.split() for line in text.splitlines() if line.startswith("detection")] == [
        ["detection", "0.600", "10"]
    ]
    assert [line.split() for line in text.splitlines() if line.startswith("total")] == [["total", "11.830", "60"]]
    assert "simulated: all-reduce at: communicator" in text


def test_a_failure_shows_expected_seen_and_where(run: GoodRun, tmp_path: Path) -> None:
    del run.saved[1]
    text = printed(run, tmp_path)
    assert text.startswith("kill-rank: fail: checkpoint: no checkpoint of replica group [1, 3] (expected: ")
    assert "  expected  one checkpoint of replica group [1, 3], from rank 1 or 3\n" in text
    assert "  seen      no checkpoint of replica group [1, 3]\n" in text
    assert "  where     scenario.yaml:23\n" in text


def test_text_of_the_job_is_shown_as_it_is(run: GoodRun, tmp_path: Path) -> None:
    run.one("run.end")["error"] = "[bold]not markup[/bold]"
    assert "[bold]not markup[/bold]" in printed(run, tmp_path)


def test_plain_text_where_there_is_no_terminal(run: GoodRun, tmp_path: Path) -> None:
    assert "\x1b" not in printed(run, tmp_path / "plain")
    assert "\x1b[32m" in printed(good_run(), tmp_path / "colour", terminal=True)


def test_long_lines_are_not_cut(run: GoodRun, tmp_path: Path) -> None:
    run.one("run.end")["error"] = "word " * 60 + "end"
    assert "word " * 60 + "end" in printed(run, tmp_path, width=60)


def test_what_was_left_out_is_listed(run: GoodRun, tmp_path: Path) -> None:
    run.baseline = None
    run.replan(baseline="none")
    assert "not checked: checkpoint: values against the fault-free run (baseline: none)" in printed(run, tmp_path)


def test_an_unknown_phase_is_called_unknown(run: GoodRun, tmp_path: Path) -> None:
    run.log.clear()
    lines = printed(run, tmp_path).splitlines()
    assert ["detection", "unknown", "10"] in [line.split() for line in lines]


def test_why_the_run_came_to_no_good_end_is_told_before_what_follows_from_it(run: GoodRun, tmp_path: Path) -> None:
    run.one("run.end")["error"] = "the job did not start"
    run.drop("rank.exit", attempt="train", rank=1)
    text = printed(run, tmp_path)
    assert text.index("the job did not start", text.index("\nrun: unknown")) < text.index("hygiene: unknown")
    assert text.index("\nrun: unknown") < text.index("\n  expected")
