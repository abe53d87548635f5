"""index.html of a directory of runs."""

from __future__ import annotations

import base64
import hashlib
import os
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from chaos.report.files import replace_file
from chaos.report.html.document import SYMBOLS
from chaos.report.index.coverage import Coverage, coverage
from chaos.report.index.rows import Row, Unread, by_scenario, read_results, rows

FILE = "index.html"
TRENDS = "trends.html"
"""The page of times over nights, which `chaos trend --page` writes beside the index."""
SIGNS = {**SYMBOLS, "finding": "!"}
"""The sign of each verdict: a colour alone says nothing on paper, or to a reader who cannot see it."""
WORDS = {"pass": "passed", "fail": "failed", "unknown": "unknown", "finding": "failed as a known finding says"}


@dataclass(frozen=True)
class Index:
    """The data of the page of a directory of runs.

    ``trends`` is the link to the times over nights, where that page is. ``live`` is the link to the runs in progress,
    and ``in_progress`` their number; a page on disk has no such link.
    """

    title: str
    rows: list[Row]
    unread: list[Unread]
    coverage: Coverage
    trends: str | None = None
    live: str | None = None
    in_progress: int = 0


def write_index(directory: Path, kinds: list[str]) -> Path:
    """Write index.html in a directory of runs, and return its path.

    ``kinds`` are the kinds of faults that exist. Raises OSError when it cannot be written.
    """
    results, unread = read_results(directory)
    tried = coverage((result for _, result in results), kinds)
    path = directory / FILE
    trends = TRENDS if (directory / TRENDS).is_file() else None
    text = render_index(Index(directory.resolve().name, rows(directory, results), unread, tried, trends))
    replace_file(path, text.encode(errors="replace"))
    return path


def render_index(index: Index) -> str:
    """Return the page of a directory of runs as HTML."""
    return _template().render(
        index=index,
        style=_style(),
        policy=index_policy(),
        rows=index.rows,
        counts=[(word, sum(row.word == word for row in index.rows)) for word in SIGNS],
        scenarios=list(by_scenario(index.rows)),
        coverage=index.coverage,
        signs=SIGNS,
        words=WORDS,
        seconds=sum(row.seconds or 0 for row in index.rows),
    )


@cache
def index_policy() -> str:
    """Return the content policy: the page's own style sheet, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@cache
def _style() -> str:
    return (files("chaos.report.index") / "templates" / "index.css").read_text("utf-8")


@cache
def _template() -> Template:
    loader = PackageLoader("chaos.report.index")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["link"] = _link
    return environment.get_template("index.html.j2")


def _link(path: str) -> str:
    """Return a relative link to a path. The name of a directory may be no text."""
    return quote(os.fsencode(path))
