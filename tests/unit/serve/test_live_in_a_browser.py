"""The live page in a real browser: it grows with the run, ends with a link to the page, and keeps text as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chaos.base.file_lock import FileLock
from chaos.live import follow
from chaos.live.state import LETTERS
from chaos.serve.live import LiveRuns
from chaos.serve.runs import RunDirectories
from chaos.serve.server import Server
from tests.kit.pages.browser import Page, Visit, open_browser
from tests.kit.pages.page_data import HOSTILE
from tests.kit.runs.replayed_run import begun, recorded, replayed
from tests.oracle.recorded_runs import RESULTS
from tests.unit.serve.conftest import RUN, served

pytestmark = pytest.mark.processes

RECORDED = "plain-kill-rank"
PARTS = 8


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as running:
        yield running


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Server]:
    """A server of a directory without runs."""
    (tmp_path / "live").mkdir()
    with served(tmp_path / "live") as running:
        yield running


Open = Callable[..., Page]


@pytest.fixture
def visit(browser: Any, live: Server) -> Iterator[Open]:
    """Open the live page; it must ask for nothing but what this server has, and complain about nothing."""
    visits: list[Visit] = []

    def opened(**settings: Any) -> Page:
        visits.append(Visit(browser, f"{live.url}live/", **settings))
        return visits[-1].page

    yield opened
    for each in visits:
        assert each.complaints == []
        assert [url for url in each.requests if not url.startswith(live.url)] == []
        each.close()


def expect(locator: Any) -> Any:
    """Return playwright's assertions, which wait for their condition."""
    from playwright.sync_api import expect as waiting

    return waiting(locator)


@pytest.fixture
def moments(live: Server, tmp_path: Path) -> Iterator[Iterator[int]]:
    """A recorded run happens again, a part at a time, and its harness lives until it has ended."""
    run = recorded(RECORDED, tmp_path / "recorded")
    (run / "result.json").write_text((RESULTS / f"{RECORDED}.json").read_text("utf-8"), "utf-8")
    reports = tmp_path / "live"
    place = begun(run, reports / RUN)
    lock = FileLock.try_acquire(place / ".lock")
    assert lock is not None
    shown = [0]
    live.site._live = LiveRuns(RunDirectories(reports), now=lambda: shown[0])

    def parts() -> Iterator[int]:
        for wall in replayed(run, place, PARTS):
            shown[0] = wall
            yield wall
        lock.release()
        yield shown[0]

    yield parts()
    lock.release()


def test_the_page_grows_with_the_run_and_leads_to_its_page(visit: Open, moments: Iterator[int], tmp_path: Path) -> None:
    place = tmp_path / "live" / RUN
    page = visit()
    card = page.locator("#runs .card")
    next(moments)
    expect(card).to_have_count(1)
    expect(card.locator("h2")).to_contain_text(RECORDED)
    node = card.element_handle()
    steps = set()
    for _ in range(PARTS - 1):
        state = follow(place).state(next(moments))
        shown = "no step yet" if state.step is None else f"step {state.step} of {state.steps}"
        expect(card.locator(".measure .big")).to_have_text(shown)
        expect(card.locator(".badge")).to_contain_text(state.stage_words)
        expect(card.locator(".strip b")).to_have_text([LETTERS[rank.state] for rank in state.ranks])
        steps.add(state.step)
        if len(steps) == 1:
            card.locator("summary").click()
    assert len(steps) > 2
    assert page.evaluate("(node) => node.isConnected", node), "the card is filled, and never made anew"
    expect(card.locator("details table")).to_be_visible()
    expect(card).to_contain_text("↩ undone")
    next(moments)
    ended = page.locator("#ended .card")
    expect(ended.locator(".badge")).to_have_text("✓ ended: pass")
    expect(page.locator("#nothing")).to_be_visible()
    ended.get_by_role("link", name="The page of this run").click()
    page.wait_for_selector("html[data-ready]")
    expect(page.locator(".top .run")).to_have_text(RUN)
    page.get_by_role("link", name="All runs").click()
    expect(page.locator("h1")).to_contain_text("Runs in live")


def test_without_a_run_the_page_says_so_and_shows_the_next(visit: Open) -> None:
    expect(visit().locator("#nothing")).to_be_visible()


def test_keys_reach_the_table_and_the_theme_is_the_systems_or_the_readers(visit: Open, moments: Iterator[int]) -> None:
    next(moments)
    page = visit(scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(20, 23, 27)"
    summary = page.locator("#runs summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#runs details table")).to_be_visible()
    page.locator("#theme").click()
    assert page.evaluate(colour) == "rgb(255, 255, 255)"


def test_nothing_is_wider_than_a_narrow_screen(visit: Open, moments: Iterator[int]) -> None:
    for _ in range(PARTS - 1):
        next(moments)
    page = visit(width=480)
    expect(page.locator("#runs .card")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 480


def hostile(value: Any) -> Any:
    """The same data with markup in place of every text."""
    if isinstance(value, dict):
        return {f"{key} {HOSTILE}" if key == "training" else key: hostile(part) for key, part in value.items()}
    if isinstance(value, list):
        return [hostile(part) for part in value]
    return f"{value} {HOSTILE}" if isinstance(value, str) else value


def test_markup_in_a_runs_text_stays_text(
    visit: Open, live: Server, moments: Iterator[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(PARTS - 2):
        next(moments)
    document = hostile(json.loads(live.site._live.document()))
    document["runs"][0]["problems"] = [HOSTILE]
    document["ended"] = [{**document["runs"][0], "stage": "ended", "link": "..%2F" + RUN}]
    monkeypatch.setattr(live.site._live, "document", lambda: json.dumps(document).encode())
    page = visit()
    expect(page.locator("#runs .card h2")).to_contain_text(HOSTILE)
    expect(page.locator("#runs .problems li")).to_have_text(HOSTILE)
    assert page.evaluate("document.images.length") == 0
    assert page.evaluate("document.scripts.length") == 2
    assert page.evaluate("document.querySelectorAll('.card script, .card img, .card iframe').length") == 0


def test_a_server_that_has_gone_is_told(browser: Any, live: Server, moments: Iterator[int]) -> None:
    next(moments)
    with closing(Visit(browser, f"{live.url}live/")) as visited:
        expect(visited.page.locator("#runs .card")).to_have_count(1)
        live.site._live = None  # type: ignore[assignment]
        expect(visited.page.locator("#connection")).to_contain_text("✗ No answer from chaos serve")
        expect(visited.page.locator("#runs .card")).to_have_count(1)
