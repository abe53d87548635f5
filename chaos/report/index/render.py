"""index.html of a directory of runs."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from chaos.report.files import replace_file
from chaos.report.index.coverage import coverage
from chaos.report.index.rows import by_scenario, read_results, rows

FILE = "index.html"
TRENDS = "trends.html"
"""The page of times over nights, which `chaos trend --page` writes beside the index."""
SIGNS = {"pass": "✓", "fail": "✗", "unknown": "?", "finding": "!"}
"""The sign of each verdict: a colour alone tells nothing on paper, or to who does not see it."""
WORDS = {"pass": "passed", "fail": "failed", "unknown": "unknown", "finding": "failed as a known finding says"}


def write_index(directory: Path, kinds: list[str]) -> Path:
    """Write index.html in a directory of runs, and return its path.

    ``kinds`` are the kinds of faults that exist. Raises OSError when it cannot be written.
    """
    results, unread = read_results(directory)
    shown = rows(directory, results)
    style = (files("chaos.report.index") / "templates" / "index.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    loader = PackageLoader("chaos.report.index")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    text = environment.get_template("index.html.j2").render(
        title=directory.resolve().name,
        style=style,
        policy=f"default-src 'none'; style-src 'sha256-{digest}'",
        rows=shown,
        counts=[(word, sum(row.word == word for row in shown)) for word in SIGNS],
        scenarios=list(by_scenario(shown)),
        unread=unread,
        coverage=coverage((result for _, result in results), kinds),
        signs=SIGNS,
        words=WORDS,
        trends=TRENDS if (directory / TRENDS).is_file() else None,
        seconds=sum(row.seconds or 0 for row in shown),
    )
    path = directory / FILE
    replace_file(path, text.encode(errors="replace"))
    return path
