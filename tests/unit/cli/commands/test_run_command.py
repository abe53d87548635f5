"""`chaos run` around the driver: options in, results, summary and exit codes out."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.run.options import RunOptions, RunOutcome
from chaos.run.prepare.prepared import Prepared
from tests.unit.cli.kit import SCENARIO, Ended

Call = Callable[..., Ended]

MATRIX = SCENARIO.replace("variables: {victim: 1}", "matrix: {victim: [1, 2, 3]}")


class Driver:
    """Stands for the driver: writes a result.json with the verdict of the cell's turn."""

    def __init__(self) -> None:
        self.ends: list[str | BaseException] = ["pass"]
        self.options: list[RunOptions] = []

    def __call__(self, prepared: Prepared, options: RunOptions, progress: Any) -> RunOutcome:
        """Run a cell."""
        self.options.append(options)
        end = self.ends[len(self.options) - 1]
        progress.note(f"running {prepared.cell.name}")
        if isinstance(end, BaseException):
            raise end
        run_dir = options.reports / f"run-{len(self.options)}"
        run_dir.mkdir(parents=True)
        (run_dir / "result.json").write_text(json.dumps({"verdict": end}))
        return RunOutcome(run_dir, end.removesuffix("!"), end.endswith("!"))


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The driver, replaced."""
    fake = Driver()
    monkeypatch.setattr("chaos.run.driver.run_cell", fake)
    return fake


@pytest.mark.parametrize(("verdict", "code"), [("pass", 0), ("fail", 1), ("unknown", 2), ("unknown!", 130)])
def test_the_verdict_is_the_exit_code(chaos: Call, place: Path, driver: Driver, verdict: str, code: int) -> None:
    driver.ends = [verdict]
    words = ("run", "kill-rank", "--json", "--seed", "5", "--baseline", "none")
    ended = chaos(*words)
    assert ended.code == code, ended.err
    (cell,) = json.loads(ended.out)["cells"]
    assert (cell["run"], cell["result"]) == ("run-1", {"verdict": verdict})
    wanted = RunOptions(place / "reports", baseline="none", arguments=words, page=True)
    assert driver.options == [wanted]


def test_a_reports_directory_that_cannot_be_made_is_bad_usage(chaos: Call, place: Path, driver: Driver) -> None:
    (place / "file").touch()
    ended = chaos("run", "kill-rank", "--reports", str(place / "file" / "reports"))
    assert ended.code == 64
    assert "the directory cannot be made: Not a directory" in ended.err
    assert driver.options == []


def test_reports_elsewhere_are_named_in_full(chaos: Call, place: Path, driver: Driver) -> None:
    (place / "link").symlink_to("scenarios")
    chaos("run", "kill-rank", "--reports", "link/../elsewhere")
    # Hosts have their own paths in place of the run's, so that it may have one name only.
    assert [options.reports for options in driver.options] == [place / "elsewhere"]


def test_progress_stays_out_of_the_json(chaos: Call, place: Path, driver: Driver) -> None:
    ended = chaos("run", "kill-rank", "--json")
    assert "running" in ended.err
    assert json.loads(ended.out)["verdict"] == "pass"


def test_every_cell_is_run_and_the_summary_is_kept(chaos: Call, place: Path, driver: Driver) -> None:
    (place / "scenarios" / "kill-rank.yaml").write_text(MATRIX)
    driver.ends = ["pass", "fail", "pass"]
    assert chaos("run", "kill-rank", "--json", "--keep-going").code == 1
    summary = json.loads((place / "reports" / "summary.json").read_text())
    assert [(cell["cell"], cell["verdict"]) for cell in summary["cells"]] == [
        ("victim=1", "pass"),
        ("victim=2", "fail"),
        ("victim=3", "pass"),
    ]
    assert summary["verdict"] == "fail"


def test_without_keep_going_the_rest_is_not_run(chaos: Call, place: Path, driver: Driver) -> None:
    (place / "scenarios" / "kill-rank.yaml").write_text(MATRIX)
    driver.ends = ["fail"]
    ended = chaos("run", "kill-rank", "--json")
    assert (ended.code, json.loads(ended.out)["not_run"]) == (1, ["kill-rank[victim=2]", "kill-rank[victim=3]"])


def test_a_failing_harness_is_3_and_is_in_the_summary(chaos: Call, place: Path, driver: Driver) -> None:
    driver.ends = [OSError("disk full")]
    ended = chaos("run", "kill-rank", "--json")
    assert ended.code == 3
    assert "the harness itself failed, so there is no verdict: OSError: disk full" in ended.err
    assert "disk full" in json.loads((place / "reports" / "summary.json").read_text())["cells"][0]["error"]


def test_a_cell_that_cannot_work_is_refused_before_any_is_started(chaos: Call, place: Path, driver: Driver) -> None:
    (place / "scenarios" / "kill-rank.yaml").write_text(
        MATRIX.replace("steps: 12", 'steps: "${steps}"').replace("matrix: {", "matrix: {steps: [12, 5], ")
    )
    ended = chaos("run", "kill-rank")
    assert (ended.code, driver.options) == (64, [])


def test_sigterm_ends_a_run_like_ctrl_c(
    chaos: Call, place: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def terminated(*_: Any) -> RunOutcome:
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("the signal was not delivered")

    monkeypatch.setattr("chaos.run.driver.run_cell", terminated)
    before = signal.getsignal(signal.SIGTERM)
    assert chaos("run", "kill-rank", "--json").code == 130
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_baseline_is_an_earlier_run(chaos: Call, place: Path, driver: Driver) -> None:
    assert chaos("run", "kill-rank", "--baseline", "nothing").code == 64
    (place / "reports" / "old").mkdir(parents=True)
    (place / "reports" / "old" / "run.json").write_text("{}")
    chaos("run", "kill-rank", "--baseline", "old", "--json")
    assert driver.options[0].baseline == str(place / "reports" / "old")
