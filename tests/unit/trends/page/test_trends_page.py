"""The page of trends as a file: what it holds, where it lies, and that text of a job stays text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.trends.page.data import links_to_files, page_data
from chaos.trends.page.write import page_name, write_trends
from chaos.trends.store import FILE, changing, put_rows
from tests.kit.runs.many_runs import a_row, nights
from tests.unit.cli.kit import Ended
from tests.unit.trends.page.conftest import FAILED, SLOW_FROM, history


def test_the_data_has_change_points_flips_and_interrupted_runs(reports: Path) -> None:
    _, cell, _ = page_data(history(), links_to_files(reports, reports / "trends.html"))["cells"]
    (load,) = (phase for phase in cell["phases"] if phase["phase"] == "load")
    (point,) = load["points"]
    assert abs(point["at"] - SLOW_FROM) <= 2 and "mindspore 2.8.0 → 2.9.0" in point["changes"]
    assert load["times"][FAILED] is None and load["count"] == 98
    assert [(flip["at"], flip["text"], flip["same"]) for flip in cell["flips"]] == [
        (FAILED, "pass → fail", True),
        (FAILED + 1, "fail → pass", True),
    ]
    assert cell["verdicts"] == {"pass": 98, "fail": 1, "interrupted": 1}


def test_a_run_is_linked_from_where_the_page_lies_and_only_where_its_page_is(reports: Path) -> None:
    newest = history()[-3]
    for page, path in ((reports / "t.html", newest.run), (reports.parent / "t.html", f"reports/{newest.run}")):
        _, cell, _ = page_data(history(), links_to_files(reports, page))["cells"]
        assert [run["report"] for run in cell["runs"][-2:]] == [None, f"{path}/report.html"]
    (reports.parent / "report.html").write_text("")
    for name in ("..", "../x", "/etc", ""):
        (cell,) = page_data([replace(a_row(), run=name)], links_to_files(reports, reports / "t.html"))["cells"]
        assert cell["runs"][0]["report"] is None


def test_markup_in_names_ends_no_element(tmp_path: Path) -> None:
    plain = write_trends([a_row()], tmp_path, tmp_path / "plain.html").read_text()
    evil = [a_row(0, "</script><script>x</script>", {"<img src=x>": 1.0}, run="<style>")]
    text = write_trends(evil, tmp_path, tmp_path / "evil.html").read_text()
    for tag in ("<script", "</script", "<img", "<style"):
        assert text.count(tag) == plain.count(tag), tag


def test_a_page_without_runs_says_so(tmp_path: Path) -> None:
    assert "There are no runs." in write_trends([], tmp_path, tmp_path / "t.html").read_text()


def test_the_page_of_a_scenario_has_a_plain_name() -> None:
    assert page_name(None) == "trends.html"
    assert page_name("kill-rank[victim=1]/../x") == "trends-kill-rank-victim-1-..-x.html"


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    reports = tmp_path / "reports"
    reports.mkdir()
    with changing(reports / FILE) as connection:
        put_rows(connection, nights(5, 20))
    return reports


def test_the_command_writes_the_page_beside_the_runs_or_where_it_is_told(
    chaos: Callable[..., Ended], stored: Path
) -> None:
    assert chaos("trend", "--page").out == "reports/trends.html\n"
    assert chaos("trend", "kill-rank", "--page").out == "reports/trends-kill-rank.html\n"
    assert chaos("trend", "--page", "out.html").out == "out.html\n"
    assert "uce-repair" in (stored / "trends.html").read_text()
    assert "uce-repair" not in (stored / "trends-kill-rank.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--page", "kill-rank"], "a scenario stands before it: chaos trend kill-rank --page"),
        (["--page", "--json"], "give one of them"),
        (["--open"], "--open: needs --page"),
    ],
)
def test_what_cannot_be_a_page_is_told(
    chaos: Callable[..., Ended], stored: Path, arguments: list[str], message: str
) -> None:
    ended = chaos("trend", *arguments)
    assert ended.code == 64 and message in ended.err


def test_the_index_of_a_directory_links_the_trends_of_its_store(chaos: Callable[..., Ended], stored: Path) -> None:
    (stored / "run-1").mkdir()
    (stored / "run-1" / "run.json").write_text("{}")
    assert chaos("report", str(stored)).out == f"{stored}/index.html\n"
    assert 'href="trends.html"' in (stored / "index.html").read_text()
    (stored / FILE).unlink()
    (stored / "trends.html").unlink()
    chaos("report", str(stored))
    assert "trends.html" not in (stored / "index.html").read_text()
    assert 'href="index.html"' in write_trends([], stored, stored / "trends.html").read_text()
