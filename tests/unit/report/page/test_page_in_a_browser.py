"""The page in a real browser, opened from disk: pointer, keyboard, themes, paper, and markup in a job's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from chaos.base.wait import wait_for
from chaos.report.page.render import render
from tests.kit.pages import large_page, page_data
from tests.kit.pages.browser import PATIENCE_MS, Page, Visit, after_drawing, expect, open_browser
from tests.kit.runs.good_run import GoodRun, digests_of
from tests.unit.report.page.conftest import PageOf

pytestmark = pytest.mark.processes

GUTTER = 156
GROUP, ROW, HEAD_LINE = 24, 22, 20
"""Heights of the timeline's lines in pixels: that of a group, that of a rank, and that of the head."""

Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as running:
        yield running


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Pages by the name of their sample data, each made once."""
    directory = tmp_path_factory.mktemp("pages")

    def file(name: str) -> Path:
        path = directory / f"{name}.html"
        if not path.exists():
            data = large_page.large() if name == "large" else getattr(page_data, name)()
            path.write_text(render(data), encoding="utf-8")
        return path

    return file


@pytest.fixture
def visit(browser: Any, files: Callable[[str], Path]) -> Iterator[Open]:
    """Open pages by name; each must ask for nothing but itself, and complain about nothing."""
    visits: list[tuple[Visit, Path]] = []

    def opened(name: str, **settings: Any) -> Visit:
        visits.append((Visit(browser, files(name), **settings), files(name)))
        return visits[-1][0]

    yield opened
    for each, path in visits:
        assert (each.complaints, each.requests) == ([], [path.as_uri()])
        each.close()


def window(page: Page) -> tuple[float, float]:
    """Return the part of the run's time that the timeline shows."""
    root = page.locator(".timeline")
    return float(root.get_attribute("data-from")), float(root.get_attribute("data-to"))


def length(page: Page) -> float:
    begin, end = window(page)
    return end - begin


def point_at(page: Page, t: float, y: float) -> tuple[float, float]:
    """Return the place of a moment on the rows of the timeline, ``y`` pixels below their top."""
    page.locator(".timeline").scroll_into_view_if_needed()
    box = page.locator("canvas.rows").bounding_box()
    begin, end = window(page)
    return box["x"] + GUTTER + (t - begin) / (end - begin) * (box["width"] - GUTTER), box["y"] + y


RANK_2 = 2 * GROUP + 2 * ROW + ROW / 2
"""The middle of rank 2: below two groups and two ranks."""


@pytest.mark.parametrize("name", ["passing", "failing", "hostile", "empty"])
def test_a_page_opens_from_disk_without_a_request_and_without_a_complaint(name: str, visit: Open) -> None:
    page = visit(name).page
    for section in ("verdict", "timeline", "recovery", "curves", "checkpoints", "plan", "environment"):
        expect(page.locator(f"#{section}")).to_be_visible()


def test_a_value_changed_by_hand_is_found_with_its_file_and_its_evidence_in_two_clicks(
    browser: Any, page: PageOf, run: GoodRun, tmp_path: Path
) -> None:
    saved = run.saved[0]
    name = next(name for name in saved.state if name.endswith("weight"))
    before = digests_of(saved.state)[name]
    saved.state = {**saved.state, name: saved.state[name] + 1}
    path = tmp_path / "report.html"
    path.write_text(render(asdict(page(run))), encoding="utf-8")
    visit = Visit(browser, path)
    statement = visit.page.locator("details.statement[open]").first
    for text in (saved.path, name, before, digests_of(saved.state)[name]):
        expect(statement.locator("dd.fact", has_text=text).first).to_be_visible()
    statement.locator("button.place").first.click()
    evidence = visit.page.locator(".excerpt:visible").first
    expect(evidence).to_contain_text(before)
    visit.close()


def test_the_verdict_has_a_word_and_a_sign(visit: Open) -> None:
    expect(visit("failing").page.locator("h1")).to_contain_text("✗ fail The optimizer's moments")
    expect(visit("passing").page.locator("h1")).to_contain_text("✓ pass all")


def test_a_failing_page_leads_to_the_file_and_the_value_in_two_clicks(visit: Open) -> None:
    page = visit("failing").page
    page.get_by_role("button", name="history/resume-rank_0-1.jsonl:8").click()
    excerpt = page.locator(".excerpt")
    expect(excerpt.locator("figcaption")).to_have_text("history/resume-rank_0-1.jsonl")
    marked = excerpt.locator(".marked")
    expect(marked).to_contain_text("moments.layer1.bias")
    expect(marked).to_contain_text("e07b2d11")
    expect(marked).to_have_attribute("data-n", "8")


def test_a_failing_page_shows_file_parameter_and_values_of_its_cause_without_a_click(visit: Open) -> None:
    facts = visit("failing").page.locator(".statement[open] dd.fact")
    expect(facts.nth(2)).to_have_text("ckpt/rank_0/kill-5_1.ckpt")
    expect(facts.nth(2)).to_be_visible()
    expect(facts.nth(3)).to_contain_text("moments.layer1.bias")
    expect(facts.nth(4)).to_have_text("51f3c09a")
    expect(facts.nth(5)).to_have_text("e07b2d11")


def test_a_link_to_the_scenario_opens_its_line(visit: Open) -> None:
    page = visit("failing").page
    expect(page.locator("#line-18")).not_to_be_visible()
    page.get_by_role("link", name="kill-rank.yaml:18").click()
    expect(page.locator("#line-18")).to_be_in_viewport()


def test_the_pointer_shows_the_exact_event(visit: Open) -> None:
    page = visit("passing").page
    page.mouse.move(*point_at(page, page_data.FAULT_T, RANK_2))
    tip = page.locator(".tooltip")
    expect(tip).to_contain_text("rank 2 · train · pid 4102")
    expect(tip).to_contain_text("SIGKILL (history/harness.jsonl:42)")
    expect(tip).to_contain_text("exit at 4.900 s")
    page.mouse.move(*point_at(page, 5.4, GROUP + ROW / 2))
    expect(tip).to_contain_text("save_ckpt of step 5 to ckpt/rank_0")
    page.mouse.move(*point_at(page, 2.6, GROUP + ROW / 2))
    expect(tip).to_contain_text("step 2")
    x, y = point_at(page, 5.15, 0)
    page.mouse.move(x, y - 2.5 * HEAD_LINE - 3)
    expect(tip).to_contain_text("the SDK's controller: ABNORMAL")
    expect(tip).to_contain_text("logs/train/ttp/ttp_log.log.4100:12")
    page.mouse.move(5, 5)
    expect(tip).to_be_hidden()


def test_the_wheel_zooms_about_the_pointer_and_a_drag_moves(visit: Open) -> None:
    page = visit("passing").page
    whole = length(page)
    x, y = point_at(page, 5.0, RANK_2)
    page.mouse.move(x, y)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    after_drawing(page)
    assert length(page) < whole / 2
    assert point_at(page, 5.0, RANK_2)[0] == pytest.approx(x, abs=2)
    begin = window(page)[0]
    page.mouse.down()
    page.mouse.move(x - 100, y, steps=4)
    page.mouse.up()
    after_drawing(page)
    assert window(page)[0] > begin
    assert point_at(page, 5.0, RANK_2)[0] == pytest.approx(x - 100, abs=2)


def test_the_wheel_alone_scrolls_the_page(visit: Open) -> None:
    page = visit("passing").page
    whole = window(page)
    page.mouse.move(*point_at(page, 5.0, RANK_2))
    page.mouse.wheel(0, 200)
    # Playwright would wait by a script that the page's policy forbids.
    wait_for("the page scrolls", lambda: page.evaluate("scrollY > 0") or None, seconds=PATIENCE_MS / 1000)
    assert window(page) == whole


def test_keys_zoom_move_and_show_all_again(visit: Open) -> None:
    page = visit("passing").page
    whole = window(page)
    page.locator(".timeline").focus()
    for key in ("+", "+", "ArrowRight"):
        page.keyboard.press(key)
    after_drawing(page)
    begin, end = window(page)
    assert end - begin == pytest.approx((whole[1] - whole[0]) * 0.36)
    assert (begin + end) / 2 > sum(whole) / 2
    page.keyboard.press("0")
    after_drawing(page)
    assert window(page) == whole


def test_the_tab_key_reaches_the_timeline_and_enter_closes_a_group(visit: Open) -> None:
    page = visit("passing").page
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "timeline":
            break
    root = page.locator(".timeline")
    expect(root).to_be_focused()
    expect(root).to_have_attribute("data-lines", "6")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(root).to_have_attribute("data-lines", "4")
    expect(page.get_by_role("button", name="node 0 (2)")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    expect(root).to_have_attribute("data-lines", "6")


def test_a_click_closes_a_group_and_its_strip_counts_ranks(visit: Open) -> None:
    page = visit("passing").page
    page.get_by_role("button", name="node 0 (2)").click()
    expect(page.locator(".timeline")).to_have_attribute("data-lines", "4")
    page.mouse.move(*point_at(page, 2.2, GROUP / 2))
    expect(page.locator(".tooltip")).to_contain_text("2 of 2 ranks alive")
    expect(page.locator(".tooltip")).to_contain_text("2 training")


def test_rows_are_grouped_by_replica_group_as_well(visit: Open) -> None:
    page = visit("passing").page
    page.get_by_label("Group ranks by").select_option("group")
    expect(page.locator(".group-label")).to_have_text(["▾ replica group 0 (2)", "▾ replica group 1 (2)"])


def test_keys_go_from_event_to_event_and_say_each(visit: Open) -> None:
    page = visit("passing").page
    page.locator(".timeline").focus()
    for key in ("ArrowDown", "ArrowDown", *"nnnnn"):
        page.keyboard.press(key)
    said = page.locator("#timeline [aria-live]")
    expect(said).to_have_text("rank 0 · train, sdk.report_error: rank 2 has gone, detection at 5.100 s")
    page.keyboard.press("p")
    held = "rank 0 · train, barrier.reached: step 5, step.end · 100 ms, held at a barrier at 4.800 s"
    expect(said).to_have_text(held)


def test_events_are_a_table_as_well_and_each_leads_to_its_place(visit: Open) -> None:
    page = visit("passing").page
    page.locator("summary", has_text="events as a table").click()
    row = page.locator(".events tr", has_text="SIGKILL")
    expect(row).to_contain_text("rank 2 · train")
    row.get_by_role("button").click()
    expect(page.locator(".tooltip")).to_contain_text("SIGKILL")


def test_planned_stands_beside_seen(visit: Open) -> None:
    row = visit("passing").page.locator(".planned tbody tr")
    expect(row).to_contain_text("kill rank 2, step 5, phase step.end")
    expect(row).to_contain_text("✓ landed in step 5, step.end, 4.900 s")


def test_the_waterfall_has_budgets_and_says_what_is_over(visit: Open) -> None:
    page = visit("failing").page
    expect(page.locator(".waterfall tr", has_text="detection")).to_contain_text("210 ms2.00 s11 %")
    expect(page.locator(".waterfall tr", has_text="stop")).to_contain_text("✗ 180 %, over")
    expect(page.locator(".waterfall tr", has_text="stop").locator("th")).to_have_text("✗ stop")
    expect(page.locator(".waterfall tr", has_text="caught up")).to_contain_text("nothing was trained again")
    expect(page.locator(".waterfall tr", has_text="steps trained again")).to_contain_text("020 %")


def test_curves_name_the_first_step_that_differs_and_read_values_by_key(visit: Open) -> None:
    page = visit("failing").page
    expect(page.locator("#curves")).to_contain_text("≠ The loss differs from the fault-free run from step 7 on.")
    plot = page.locator(".plot").first
    plot.focus()
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    expect(plot.locator("output")).to_have_text("step 7: 0.3307 · fault-free 0.33")
    passing = visit("passing").page
    expect(passing.locator(".plot").first).to_contain_text("difference: 0 at 12 steps")
    expect(passing.locator("#curves .compared")).to_have_text(
        "= No step differs from the fault-free run in loss or norm."
    )
    expect(visit("cut_short").page.locator("#curves .compared")).to_contain_text("Only 5 of 12 steps can be compared.")


def test_the_checkpoint_map_shows_damage_readers_and_the_file(visit: Open) -> None:
    page = visit("failing").page
    cell = page.locator(".map .cell.damaged")
    expect(cell).to_have_text("✗ damaged → 0, 2")
    cell.focus()
    expect(page.locator(".tooltip")).to_contain_text("checkpoints/rank_0/kill-5_1.ckpt")


def test_dark_mode_is_the_systems_or_the_readers(visit: Open) -> None:
    page = visit("passing", scheme="dark").page
    dark = "getComputedStyle(document.body).backgroundColor"
    drawing = "document.querySelector('canvas.rows').toDataURL()"
    assert page.evaluate(dark) == "rgb(20, 23, 27)"
    before = page.evaluate(drawing)
    switch = page.locator("#theme")
    switch.click()
    expect(switch).to_have_attribute("aria-label", "Colours: light")
    assert page.evaluate(dark) == "rgb(255, 255, 255)"
    after_drawing(page)
    assert page.evaluate(drawing) != before


def test_paper_is_light_and_shows_the_evidence_that_decided(visit: Open) -> None:
    page = visit("failing", scheme="dark").page
    page.emulate_media(media="print")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    expect(page.locator(".excerpt").first).to_be_visible()
    expect(page.locator("nav")).to_be_hidden()
    expect(page.locator(".tools")).to_be_hidden()
    assert page.locator("canvas.rows").bounding_box()["width"] <= 700
    pages = re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))
    assert 2 <= len(pages) <= 5, "what decided begins on the first page"


def test_nothing_is_wider_than_a_narrow_screen(visit: Open) -> None:
    page = visit("failing", width=400).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    value = page.locator(".statement[open] dd.fact").last
    assert value.bounding_box()["width"] > 300, "values have the whole width"


def test_markup_in_a_jobs_text_stays_text(visit: Open) -> None:
    page = visit("hostile").page
    page.get_by_role("button", name="history/resume-rank_0-1.jsonl:8").first.click()
    expect(page.locator(".excerpt .marked")).to_contain_text(page_data.HOSTILE)
    page.mouse.move(*point_at(page, page_data.FAULT_T, RANK_2))
    expect(page.locator(".tooltip")).to_contain_text(page_data.HOSTILE)
    page.locator("summary", has_text="events as a table").click()
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("document.scripts.length") == 2
    assert "owned" not in page.title().replace(page_data.HOSTILE, "")


def test_a_thousand_ranks_begin_as_groups_with_the_rank_that_was_hit(visit: Open) -> None:
    page = visit("large").page
    root = page.locator(".timeline")
    expect(root).to_have_attribute("data-lines", str(128 + 8))
    expect(page.locator(".group-label[aria-expanded=true]")).to_have_text("▾ node 40 (8)")
    expect(page.get_by_role("button", name="node 40 (8)")).to_be_in_viewport()
    page.get_by_role("button", name="Open all groups").click()
    expect(root).to_have_attribute("data-lines", str(128 + 1024))
    page.get_by_role("button", name="Close all groups").click()
    expect(root).to_have_attribute("data-lines", "128")
