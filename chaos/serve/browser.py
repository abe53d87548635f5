"""The browser is started with a file that leads to the server's page.

The words of a command can be read by every user of a machine. The file is for this user alone, and so is the token.
"""

from __future__ import annotations

import html
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PAGE = """<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}"><title>chaos serve</title>
<a href="{url}">The runs</a>
"""


@contextmanager
def shown(url: str) -> Iterator[bool]:
    """Start the browser on ``url``. Yield whether there is one; the file is removed in the end."""
    with tempfile.TemporaryDirectory(prefix="chaos-serve-") as directory:
        path = Path(directory) / "open.html"
        path.write_text(_PAGE.format(url=html.escape(url)), encoding="utf-8")
        yield webbrowser.open(path.as_uri())
