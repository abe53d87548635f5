"""A real browser for tests of pages: Debian's chromium, driven by playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_MS = 60_000
"""How long a condition may take on a busy machine."""

Page = Any
"""A page of playwright."""


@contextmanager
def open_browser() -> Iterator[Any]:
    """Start a browser without a window, and end it; skip the test with the reason where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser is installed ({', '.join(PROGRAMS)}); on Debian: apt install chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    playwright.expect.set_options(timeout=PATIENCE_MS)
    with playwright.sync_playwright() as driver:
        # A container lets root make no sandbox; what is opened here are files that the test has made.
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"], timeout=PATIENCE_MS)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page that was opened from disk or by its URL, with what it asked for and what it complained about."""

    def __init__(self, browser: Any, place: Path | str, width: int = 1280, scheme: str = "light") -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(PATIENCE_MS)
        self.page: Page = context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(place if isinstance(place, str) else place.as_uri())
        self.page.wait_for_selector("html[data-ready]")

    def close(self) -> None:
        """Close the page, and forget what it stored."""
        self.page.context.close()


def expect(locator: Any) -> Any:
    """Return playwright's assertions, which wait for their condition."""
    from playwright.sync_api import expect as waiting

    return waiting(locator)


def after_drawing(page: Page) -> None:
    """Wait until what was asked for is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
