"""A page holds the lines around its evidence, and nothing from outside the run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.report.page.excerpts import AROUND, MOST, Excerpts, scenario_line


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "run" / "logs").mkdir(parents=True)
    (tmp_path / "run" / "logs" / "worker_0.log").write_text("".join(f"line {n}\n" for n in range(1, 101)))
    (tmp_path / "outside.log").write_text("secret\n" * 9)
    return tmp_path / "run"


def test_the_lines_around_a_place_are_kept_once(run_dir: Path) -> None:
    excerpts = Excerpts(run_dir)
    key = excerpts.key("logs/worker_0.log:50")
    assert key is not None and excerpts.key("logs/worker_0.log:50") == key
    excerpt = excerpts.excerpts[key]
    assert excerpt.lines == tuple(f"line {n}" for n in range(50 - AROUND, 50 + AROUND + 1))
    assert (excerpt.first, excerpt.marked) == (50 - AROUND, (50,))


def test_the_first_line_has_none_before_it(run_dir: Path) -> None:
    excerpts = Excerpts(run_dir)
    key = excerpts.key("logs/worker_0.log:1")
    assert key is not None
    assert (excerpts.excerpts[key].first, excerpts.excerpts[key].lines[0]) == (1, "line 1")


@pytest.mark.parametrize(
    "place",
    [
        "../outside.log:3",
        "/etc/passwd:1",
        "logs/../../outside.log:3",
        "logs/link.log:3",
        "logs/fifo:1",
        "logs:1",
        "logs/worker_0.log",
        "logs/worker_0.log:0",
        "logs/worker_0.log:101",
        "logs/worker_0.log:99999999999",
        "logs/none.log:1",
        "logs/\0:1",
    ],
)
def test_a_place_that_is_no_line_of_the_run_has_no_excerpt(run_dir: Path, place: str) -> None:
    (run_dir / "logs" / "link.log").symlink_to(run_dir.parent / "outside.log")
    os.mkfifo(run_dir / "logs" / "fifo")
    assert Excerpts(run_dir).key(place) is None


def test_a_page_holds_a_bounded_number_of_excerpts(run_dir: Path) -> None:
    (run_dir / "long.log").write_text("x\n" * 1000)
    excerpts = Excerpts(run_dir)
    keys = [excerpts.key(f"long.log:{line}") for line in range(1, MOST + 10)]
    assert keys.count(None) == 9


def test_a_long_line_is_cut_off_and_told(run_dir: Path) -> None:
    (run_dir / "long.log").write_text("y" * 10_000 + "\n")
    excerpts = Excerpts(run_dir)
    key = excerpts.key("long.log:1")
    assert key is not None
    assert excerpts.excerpts[key].lines[0].endswith("… (10,000 characters)")


def test_the_line_of_the_scenario_is_taken_from_the_places() -> None:
    assert scenario_line(("history/harness.jsonl:3", "scenario.yaml:17")) == 17
    assert scenario_line(("baseline/scenario.yaml:17", "scenario.yaml")) is None


def test_a_long_line_keeps_what_its_statement_quotes(run_dir: Path) -> None:
    line = "a" * 900 + '"layer2.weight":"e21fcc59"' + "b" * 900 + "3ec1be30" + "c" * 900
    (run_dir / "long.log").write_text(f"{line}\n")
    excerpts = Excerpts(run_dir)
    key = excerpts.key("long.log:1", ("layer2.weight", "3ec1be30", "not there", ""))
    assert key is not None
    (shown,) = excerpts.excerpts[key].lines
    assert '"layer2.weight":"e21fcc59"' in shown and "3ec1be30" in shown
    assert shown.startswith("aaa") and shown.endswith("… (2,734 characters)") and len(shown) < 900


def test_lines_that_two_statements_quote_are_kept_once(run_dir: Path) -> None:
    excerpts = Excerpts(run_dir)
    assert excerpts.key("logs/worker_0.log:50", ("line",)) == excerpts.key("logs/worker_0.log:50", ("other",))
    assert len(excerpts.excerpts) == 1
