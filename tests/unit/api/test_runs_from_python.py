"""From Python: what is wrong is told before anything is started, and a run comes back as frozen data."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chaos.api import (
    BadScenario,
    CannotRun,
    Chaos,
    HarnessFailed,
    Interrupted,
    NotMeasured,
    Run,
    UnknownCell,
    UnknownParameter,
    UnknownScenario,
)
from chaos.api.losses import read_losses
from chaos.api.results import run_of
from chaos.report.analyze import analyze
from tests.kit.runs.good_run import LAST, good_run, loss_after

SCENARIO = """\
chaos: 1
name: mine
variables: {ranks: 4}
matrix: {victim: [1, 2]}
cluster: {ranks: "${ranks}"}
job: {kind: plain, steps: 12, protection: [TTP]}
faults:
  - kind: kill
    target: {rank: "${victim}"}
    trigger: {step: 5}
"""


class Canned(Chaos):
    """Starts a process that prints this answer in place of ``chaos``."""

    def __init__(self, directory: Path, *, status: int = 0, answer: object = None, errors: str = "") -> None:
        super().__init__(directory=directory, on_line=self._hear)
        self.status, self.answer, self.errors = status, json.dumps(answer), errors
        self.calls: list[Sequence[str]] = []
        self.heard: list[str] = []

    def _hear(self, line: str) -> None:
        self.heard.append(line)

    def _command(self, arguments: Sequence[str]) -> list[str]:
        self.calls.append(arguments)
        program = "import sys; sys.stderr.write(sys.argv[1]); print(sys.argv[2]); sys.exit(int(sys.argv[3]))"
        return [sys.executable, "-c", program, self.errors, self.answer, str(self.status)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a scenario of two cells."""
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "mine.yaml").write_text(SCENARIO)
    return tmp_path


def answer_of(run_dir: Path) -> dict[str, Any]:
    entry = {"run": run_dir.name, "directory": str(run_dir), "result": analyze(run_dir).to_json()}
    return {"cells": [entry], "comparisons": []}


def test_a_run_is_the_verdict_with_its_statements_and_times(place: Path) -> None:
    run_dir = good_run().write(place / "run-1")
    chaos = Canned(place, answer=answer_of(run_dir), errors="a line\nanother\n")
    run = chaos.run("mine", victim=2)
    assert (run.verdict, run.headline, run.directory, run.name) == ("pass", "", run_dir, "run-1")
    assert run.recovery.mechanism == "TTP" and 0 < run.recovery.seconds("detection") < run.recovery.total < 60
    assert [statement.verdict for statement in run.of_check("checkpoint")].count("pass") > 0
    assert chaos.heard == ["a line", "another"]
    (call,) = chaos.calls
    assert call[:2] == ["run", str(place / "scenarios" / "mine.yaml")]
    assert call[-4:] == ["--cell", "victim=2", "--set", "victim=2"]
    assert call[call.index("--reports") + 1] == str(place / "reports")
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.verdict = "fail"  # type: ignore[misc]


def test_a_fail_is_a_value_with_its_headline_and_ten_lines(place: Path) -> None:
    good = good_run()
    good.drop("rank.exit", rank=2)
    run_dir = good.write(place / "run-1")
    run = Canned(place, status=2, answer=answer_of(run_dir)).run("mine", victim=1)
    assert run.verdict != "pass" and run.headline
    lines = str(run).splitlines()
    assert lines[0] == run.headline and len(lines) <= 10
    assert any(statement.decides and statement.verdict == run.verdict for statement in run.statements)


def test_losses_are_those_of_the_history_by_step(tmp_path: Path) -> None:
    losses = read_losses(good_run().write(tmp_path / "run-1"))
    expected = {step: loss_after(losses.rank, step) for step in range(1, LAST + 1)}
    assert dict(losses.by_step) == expected
    assert dict(losses.baseline) == expected


@pytest.mark.parametrize(
    ("status", "error"), [(3, HarnessFailed), (64, CannotRun), (130, Interrupted), (7, HarnessFailed)]
)
def test_an_end_without_a_verdict_is_an_error_with_what_was_printed(
    place: Path, status: int, error: type[Exception]
) -> None:
    with pytest.raises(error, match="no port is free"):
        Canned(place, status=status, errors="no port is free\n").run("mine", victim=1)


def test_what_is_wrong_is_told_before_anything_starts(place: Path) -> None:
    chaos = Canned(place)
    with pytest.raises(UnknownScenario, match="did you mean 'mine'"):
        chaos.run("mime")
    with pytest.raises(UnknownParameter, match=r"no variable and no axis 'victm'; did you mean 'victim'\?"):
        chaos.run("mine", victm=1)
    with pytest.raises(UnknownParameter, match="a value must be"):
        chaos.run("mine", victim=object())
    with pytest.raises(BadScenario, match="must be a whole number"):
        chaos.run("mine", victim=1, ranks="many")
    with pytest.raises(UnknownCell, match=r"has 2 cells, .*cell='victim=1'.*victim=1.*run_all"):
        chaos.run("mine")
    with pytest.raises(UnknownCell, match="did you mean 'victim=2'"):
        chaos.run("mine", cell="victim=22")
    assert chaos.calls == []


def test_a_text_stays_a_text(place: Path) -> None:
    run_dir = good_run().write(place / "run-1")
    chaos = Canned(place, answer=answer_of(run_dir))
    (place / "text.yaml").write_text(SCENARIO.replace("ranks: 4", "ranks: 4, word: a") + "description: ${word}\n")
    chaos.run("text.yaml", victim=1, set={"word": "12"})
    assert chaos.calls[0][-3] == 'word="12"'


def test_all_cells_run_also_after_one_that_does_not_pass(place: Path) -> None:
    good = good_run()
    good.drop("rank.exit", rank=2)
    chaos = Canned(place, status=2, answer=answer_of(good.write(place / "run-1")))
    assert len(chaos.run_all("mine")) == 2
    assert [call[-1] for call in chaos.calls] == ["victim=1", "victim=2"]


def without_total(run_dir: Path) -> Run:
    data = analyze(run_dir).to_json()
    return run_of({**data, "recovery": {**data["recovery"], "total": None, "reason": "no save was seen"}}, run_dir)


def test_a_time_that_was_not_measured_never_passes_a_comparison(tmp_path: Path) -> None:
    run = without_total(good_run().write(tmp_path / "run-1"))
    with pytest.raises(NotMeasured, match="no save was seen"):
        assert run.recovery.total < 60
    with pytest.raises(NotMeasured, match="measured phases: detection"):
        run.recovery.seconds("lunch")
