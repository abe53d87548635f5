"""The sample lines below tests/unit/observe/logs/forms/, each with its reader and its kind of event."""

from __future__ import annotations

import re
from pathlib import Path

FORMS = sorted((Path(__file__).parents[1] / "unit" / "observe" / "logs" / "forms").glob("*.md"))
_ROW = re.compile(r"\| `(?P<line>.+?)`+ \|(?: (?P<reader>\w+) \|)? (?P<event>[\w.]+) \|")


def form_rows() -> list[tuple[str, str, str]]:
    """Line with its section's prefix, reader and kind of event. A table of one reader has its name before it."""
    rows = []
    for page in FORMS:
        prefix, reader = "", ""
        for text in page.read_text("utf-8").splitlines():
            if text.startswith("#"):
                prefix = ""
            elif text.startswith("Prefix: `"):
                prefix = text.removeprefix("Prefix: `").rstrip("`")
            elif text.startswith("Reader: `"):
                reader = text.removeprefix("Reader: `").rstrip("`")
            elif match := _ROW.fullmatch(text):
                line = prefix + match["line"].removeprefix("`").replace("\\|", "|")
                rows.append((line, match["reader"] or reader, match["event"]))
    return rows
