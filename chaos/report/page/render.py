"""The report page of a run as HTML, from plain data as :mod:`chaos.report.page.data` collects it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chaos.report.html.document import Document

HERE = Path(__file__).parent

STYLES = ("report.css",)

SCRIPTS = (
    *(f"js/timeline/{name}.js" for name in ("window", "rows", "marks", "shares", "paint", "header", "hit")),
    *(f"js/timeline/{name}.js" for name in ("legend", "control", "events", "timeline")),
    *(f"js/{name}.js" for name in ("excerpts", "waterfall", "curve_lines", "curves", "checkpoints", "page")),
)

DRAWN = ("timeline", "recoveries", "curves", "checkpoints", "excerpts")
"""The data that the scripts draw. The template sets all other data as text."""

DOCUMENT = Document(HERE, "report.html.j2", STYLES, SCRIPTS)


def render(data: dict[str, Any], links: tuple[tuple[str, str], ...] = ()) -> str:
    """Return the page of a run as HTML.

    ``data`` has the keys of ``PageData``, all times in seconds since the start of the run. ``links`` are the paths and
    names of other pages, which a page on disk does not have.
    """
    return DOCUMENT.render({key: data[key] for key in DRAWN}, links=links, **data)
