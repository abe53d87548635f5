"""The site of docs/ is built without a network, and each of its links leads to a page and a heading."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.documents.blocks import ROOT

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        find_spec("material") is None, reason="mkdocs-material is not installed (pip install '.[docs]')"
    ),
]


class Page(HTMLParser):
    """The links and the ids of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is not None and name in ("href", "src"):
                self.links.append(value)
            elif value is not None and name == "id":
                self.ids.add(value)


def dead_links(site: Path) -> list[str]:
    """Links of the site that lead nowhere, and those that need a network to show the page."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 30
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchors = pages[target].ids if target in pages else None
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and anchors is not None and anchor not in anchors):
                dead.append(f"{path.relative_to(site.resolve())}: {link}")
    return dead


def test_the_site_is_built_and_has_no_dead_link(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert dead_links(tmp_path) == []
