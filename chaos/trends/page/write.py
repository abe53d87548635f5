"""The page of times over nights, as a file or to be served."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from chaos.report.files import replace_file
from chaos.report.html.document import Document
from chaos.report.index.render import FILE as INDEX
from chaos.report.index.render import TRENDS
from chaos.trends.page.data import SYMBOLS, links_to_files, page_data
from chaos.trends.row import RunRow

HERE = Path(__file__).parent

STYLES = ("trends.css",)

SCRIPTS = tuple(f"js/{name}.js" for name in ("rolling", "marks", "phase_plot", "cell", "trends"))

DOCUMENT = Document(HERE, "trends.html.j2", STYLES, SCRIPTS)


MOST_OPENED = 3
"""Cells that are drawn when the page opens. Another one is drawn when the reader opens it."""


def page_name(scenario: str | None) -> str:
    """Return the name of the page of all scenarios, or of one."""
    return TRENDS if scenario is None else f"trends-{re.sub(r'[^A-Za-z0-9._-]+', '-', scenario)}.html"


def write_trends(
    rows: Iterable[RunRow],
    reports: Path,
    page: Path,
    scenario: str | None = None,
    *,
    last: int | None = None,
    soak: bool = False,
) -> Path:
    """Write the page of the runs of ``reports`` to the file ``page``. Raises OSError when it cannot be written."""
    data = page_data(rows, links_to_files(reports, page), scenario, last=last, soak=soak)
    beside = ((INDEX, "All runs"),) if (page.parent / INDEX).is_file() else ()
    text = render_trends(data, scenario or reports.resolve().name, beside)
    replace_file(page, text.encode(errors="replace"))
    return page


def render_trends(
    data: dict[str, Any], title: str, links: Iterable[tuple[str, str]] = (), notes: Iterable[str] = ()
) -> str:
    """Return the page of ``page_data`` as HTML.

    ``links`` are the paths and names of other pages, ``notes`` say what was left out.
    """
    return DOCUMENT.render(
        data,
        cells=data["cells"],
        title=title,
        links=tuple(links),
        notes=tuple(notes),
        signs=SYMBOLS,
        opened=_opened(data["cells"]),
    )


def _opened(cells: list[dict[str, Any]]) -> list[int]:
    """Return the cells that stand open at first: those with something new to look at, else the first."""
    news = [
        place for place, cell in enumerate(cells) if cell["flips"] or any(phase["points"] for phase in cell["phases"])
    ]
    return news[:MOST_OPENED] or [0]
