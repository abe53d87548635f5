"""The live page as HTML. It holds no data of a run: its scripts ask for them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from chaos.live.state import LETTERS
from chaos.report.html.document import Document

SCRIPTS = tuple(f"js/{name}.js" for name in ("words", "parts", "ranks", "course", "card", "live"))

DOCUMENT = Document(Path(__file__).parent, "live.html.j2", ("live.css",), SCRIPTS, ("connect-src 'self'",))


@cache
def live_page() -> str:
    """Return the page as HTML."""
    return DOCUMENT.render({"letters": dict(LETTERS)})
