"""What a result looks like to a reader."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from chaos.report.analyze import analyze
from chaos.report.result_file import read_result
from chaos.report.short import MOST_LINES
from chaos.report.terminal import print_all, print_result, print_short
from tests.kit.runs.good_run import GoodRun, good_run
from tests.oracle.recorded_runs import RESULTS


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
    assert "steps trained again" in text
    assert "simulated: all-reduce at: communicator" in text


def test_a_failure_shows_expected_seen_and_where(run: GoodRun, tmp_path: Path) -> None:
    del run.saved[1]
    text = printed(run, tmp_path)
    assert text.startswith("kill-rank: fail: checkpoint: no checkpoint of replica group [1, 3] (expected: ")
    assert "  expected  one checkpoint of replica group [1, 3], from rank 1 or 3\n" in text
    assert "  seen      no checkpoint of replica group [1, 3]\n" in text
    assert "  where     scenario.yaml:23\n" in text


def test_text_of_the_job_is_shown_as_it_is(run: GoodRun, tmp_path: Path) -> None:
    run.only("run.end")["error"] = "[bold]not markup[/bold]"
    assert "[bold]not markup[/bold]" in printed(run, tmp_path)


def test_plain_text_where_there_is_no_terminal(run: GoodRun, tmp_path: Path) -> None:
    assert "\x1b" not in printed(run, tmp_path / "plain")
    assert "\x1b[32m" in printed(good_run(), tmp_path / "colour", terminal=True)


def test_long_lines_are_not_cut(run: GoodRun, tmp_path: Path) -> None:
    run.only("run.end")["error"] = "word " * 60 + "end"
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
    run.only("run.end")["error"] = "the job did not start"
    run.drop("rank.exit", attempt="train", rank=1)
    text = printed(run, tmp_path)
    assert text.index("the job did not start", text.index("\nrun: unknown")) < text.index("hygiene: unknown")
    assert text.index("\nrun: unknown") < text.index("\n  expected")


def short(run: GoodRun, directory: Path, *, width: int = 100) -> list[str]:
    out = io.StringIO()
    print_short(analyze(run.write(directory)), Console(file=out, width=width), directory)
    return out.getvalue().splitlines()


def test_a_failure_is_shown_with_its_headline_its_cause_the_log_line_and_the_number_of_what_follows(
    run: GoodRun, tmp_path: Path
) -> None:
    run.saved[0].flip = 200
    run.drop("hygiene")
    run.replan(source="/home/somebody/kill-rank.yaml")
    run.write(tmp_path)
    with (tmp_path / "logs" / "train" / "worker_3.log").open("a") as log:
        log.write("\nRuntimeError: the moon\n")
    result = analyze(tmp_path)
    out = io.StringIO()
    print_short(result, Console(file=out, width=100), tmp_path)
    lines = out.getvalue().splitlines()
    assert result.headline is not None and lines[0] == result.headline.text
    assert [line.split()[0] for line in lines[1:3]] == ["expected", "seen"]
    assert any(line.startswith("  log       rank 3, logs/train/worker_3.log:") for line in lines)
    left = sum(check.verdict != "pass" for check in result.checks) - 1
    assert any(line.startswith(f"{left} statement") and f"chaos analyze {tmp_path} --all" in line for line in lines)
    assert lines[-2].startswith(f"kill-rank: fail: {result.headline.check}: ")
    assert lines[-1] == f"see {tmp_path}"


def test_a_place_in_the_scenario_has_the_name_of_its_file(run: GoodRun, tmp_path: Path) -> None:
    run.replan(source="/home/somebody/kill-rank.yaml")
    del run.saved[1]
    (where,) = [line for line in short(run, tmp_path) if line.startswith("  where     ")]
    assert where.startswith("  where     kill-rank.yaml:23, ")


@pytest.mark.parametrize("path", sorted(RESULTS.iterdir()), ids=lambda path: path.stem)
def test_no_recorded_run_that_does_not_pass_takes_more_than_ten_lines(path: Path, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(path.read_bytes())
    result, out = read_result(tmp_path), io.StringIO()
    print_short(result, Console(file=out, width=40), tmp_path)
    lines = out.getvalue().splitlines()
    assert result.verdict == "pass" or len(lines) <= MOST_LINES
    assert f": {result.verdict}" in lines[-2] and lines[-1] == f"see {tmp_path}"
    if result.headline is not None:
        said = result.headline.text.removeprefix(f"{result.headline.check}: ")
        assert lines[0] == result.headline.text and not any(said in line for line in lines[1:])


def test_the_verdicts_line_says_what_broke_and_on_what_and_leaves_the_words_to_the_headline(
    run: GoodRun, tmp_path: Path
) -> None:
    run.saved[0].flip = 200
    verdict = short(run, tmp_path)[-2]
    assert verdict == f"kill-rank: fail: checkpoint: rank 0, {run.saved[0].path}"


def test_an_interrupted_run_has_its_fate_in_the_headline_alone(run: GoodRun, tmp_path: Path) -> None:
    run.only("run.end")["interrupted"] = True
    lines = short(run, tmp_path)
    assert lines[0].startswith("interrupted; ") and lines[-2] == "kill-rank: unknown: interrupted"


def test_a_pass_is_short_and_has_the_phases_with_budgets(run: GoodRun, tmp_path: Path) -> None:
    lines = short(run, tmp_path)
    assert ["detection", "0.600", "10"] in [line.split() for line in lines]
    assert "simulated: all-reduce (communicator)" in lines
    assert lines[-2:] == ["kill-rank: pass", f"see {tmp_path}"]
    assert not any(line.startswith("hygiene") for line in lines)


def test_the_page_of_a_run_is_named_where_there_is_one(
    run: GoodRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.write(tmp_path / "reports" / "run-1")
    (tmp_path / "reports" / "run-1" / "report.html").touch()
    monkeypatch.chdir(tmp_path)
    assert short(run, tmp_path / "reports" / "run-1")[-1] == "see reports/run-1/report.html"


def test_the_last_two_lines_of_everything_are_the_verdict_and_the_run_too(run: GoodRun, tmp_path: Path) -> None:
    del run.saved[1]
    out = io.StringIO()
    print_all(analyze(run.write(tmp_path)), Console(file=out, width=100), tmp_path)
    lines = out.getvalue().splitlines()
    assert any(line.startswith("hygiene") for line in lines)
    assert lines[-2].startswith("kill-rank: fail: checkpoint: no checkpoint of replica group [1, 3]")
    assert lines[-1] == f"see {tmp_path}"


def test_a_long_line_of_a_short_result_is_not_cut_and_stays_one_line(run: GoodRun, tmp_path: Path) -> None:
    run.only("run.end")["error"] = "word " * 60 + "\x1b[2J\nend"
    lines = short(run, tmp_path, width=60)
    assert len(lines) <= MOST_LINES
    assert any("word " * 60 in line and line.count("end") for line in lines) and "\x1b" not in "".join(lines)
