"""The page of trends in a real browser, opened from disk: pointer, keyboard, themes, paper, and 500 nights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.trends.page.write import write_trends
from tests.kit.pages.browser import Page, Visit, after_drawing, expect, open_browser
from tests.unit.trends.page.conftest import HOSTILE, history

pytestmark = pytest.mark.processes

Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as running:
        yield running


@pytest.fixture
def visit(browser: Any, reports: Path) -> Iterator[Open]:
    """Open the page of the history; it must ask for nothing but itself, and complain about nothing."""
    visits: list[tuple[Visit, Path]] = []

    def opened(number: int = 100, **settings: Any) -> Visit:
        file = reports / f"trends-{number}.html"
        if not file.exists():
            write_trends(history(number), reports, file)
        visits.append((Visit(browser, file, **settings), file))
        return visits[-1][0]

    yield opened
    for each, file in visits:
        assert (each.complaints, each.requests[:1]) == ([], [file.as_uri()])
        each.close()


def plot_of(page: Page, phase: str) -> Any:
    """Return the plot of a phase of the cell that stands open."""
    return page.locator(".plot", has=page.locator("figcaption b", has_text=phase)).first


def test_each_phase_has_a_plot_and_changes_say_what_changed(visit: Open) -> None:
    page = visit().page
    expect(page.locator("details[open] .plot")).to_have_count(9)
    expect(plot_of(page, "load").locator(".under")).to_contain_text("mindspore 2.8.0 → 2.9.0")
    expect(page.locator("details[open] .times tr", has_text="load")).to_contain_text("mindspore 2.8.0 → 2.9.0")


def test_flips_and_verdicts_have_signs_and_words(visit: Open) -> None:
    page = visit().page
    cell = page.locator("details[open] > summary")
    expect(cell).to_contain_text("✓ 98 pass ✗ 1 fail ⊘ 1 interrupted")
    expect(cell).to_contain_text("⇄ 2 flips")
    expect(page.locator(".flips li").first).to_contain_text("pass → fail with kill-rank-20250121")
    expect(page.locator(".flips li").first).to_contain_text("on one version: flaky")
    expect(page.locator(".strip .fail")).to_have_text("✗")


@pytest.mark.nightly
def test_the_pointer_shows_the_exact_run(visit: Open) -> None:
    page = visit().page
    over = plot_of(page, "load").locator(".u-over")
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 20 / 99, box["y"] + 40)
    tip = page.locator(".tooltip")
    expect(tip).to_contain_text("kill-rank-20250121-011700-0014")
    expect(tip).to_contain_text("✗ fail")
    expect(tip).to_contain_text(HOSTILE)
    page.mouse.move(5, 5)
    expect(tip).to_be_hidden()


def test_keys_choose_a_run_and_lead_to_its_report(visit: Open) -> None:
    page = visit().page
    plot = plot_of(page, "load")
    plot.focus()
    page.keyboard.press("ArrowRight")
    expect(plot.locator("output")).to_contain_text("2025-01-01 ✓")
    expect(plot.locator("a.report")).to_be_hidden()
    for _ in range(99):
        page.keyboard.press("ArrowRight")
    expect(plot.locator("a.report")).to_have_attribute("href", "kill-rank-20250410-011700-0063/report.html")
    page.keyboard.press("Enter")
    expect(page).to_have_title("the run")


@pytest.mark.nightly
def test_keys_zoom_and_show_all_again(visit: Open) -> None:
    page = visit().page
    plot = plot_of(page, "load")
    drawing = "document.querySelector('details[open] .plot canvas').toDataURL()"
    first = page.locator("details[open] .plot").first
    before = page.evaluate(drawing)
    first.focus()
    page.keyboard.press("+")
    after_drawing(page)
    assert page.evaluate(drawing) != before
    page.keyboard.press("0")
    after_drawing(page)
    assert page.evaluate(drawing) == before
    expect(plot).to_be_visible()


def test_a_closed_cell_is_drawn_when_it_is_opened(visit: Open) -> None:
    page = visit().page
    cell = page.locator("details.cell-trend", has_text="kill-node")
    expect(cell.locator(".plot")).to_have_count(0)
    cell.locator("summary").first.press("Enter")
    expect(cell.locator(".plot")).to_have_count(9)


def test_all_times_are_a_table_as_well(visit: Open) -> None:
    page = visit().page
    page.locator("summary", has_text="all times of kill-rank as a table").click()
    rows = page.locator(".all-times tbody tr")
    expect(rows).to_have_count(100)
    expect(rows.nth(20)).to_contain_text("✗ fail")


@pytest.mark.nightly
def test_dark_mode_is_the_systems_and_paper_is_light(visit: Open) -> None:
    page = visit(scheme="dark").page
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    page.emulate_media(media="print")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_markup_of_a_job_stays_text_and_nothing_is_too_wide(visit: Open) -> None:
    page = visit(width=480).page
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("document.scripts.length") == 2
    assert page.title() == "Times over nights · reports"
    assert page.evaluate("document.documentElement.scrollWidth") <= 480


@pytest.mark.nightly
def test_five_hundred_nights_are_drawn(visit: Open) -> None:
    page = visit(500).page
    expect(page.locator("details[open] .plot")).to_have_count(9)
    expect(page.locator("details[open] .strip > *")).to_have_count(500)
