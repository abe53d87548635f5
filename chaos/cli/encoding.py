"""Text on a stream whose encoding lacks some of its characters: GBK, ASCII, Latin-1.

A character that has a plain form is shown in that form, any other as its escape. Nothing is left out, and nothing
raises.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from chaos.base.escapes import escape

HANDLER = "chaos.plainer"

PLAINER = {"µ": "u", "±": "+/-", "…": "...", "→": "->", "≤": "<=", "⁶": "^6"} | dict(
    zip("▁▂▃▄▅▆▇█", "12345678", strict=True)
)
"""Plain forms of the characters that texts of the product use."""


def plainer(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace a character that an encoding lacks; the handler that is registered as ``chaos.plainer``."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    return "".join(PLAINER.get(char) or escape(char) for char in characters), error.end


codecs.register_error(HANDLER, plainer)


def takes_everything(stream: Any) -> bool:
    """Return whether every character can be written as it is."""
    encoding = getattr(stream, "encoding", None) or "ascii"
    try:
        return codecs.lookup(encoding).name.startswith("utf")
    except LookupError:
        return False


@contextmanager
def showing_what_it_can(stream: Any) -> Iterator[None]:
    """Let a stream show each text as far as its encoding can. A stream without that setting stays as it is."""
    before = getattr(stream, "errors", None)
    set_up = getattr(stream, "reconfigure", None)
    if set_up is None or before is None:
        yield
        return
    set_up(errors=HANDLER)
    try:
        yield
    finally:
        with suppress(OSError, ValueError):  # it has been closed, or its last bytes could not be written
            set_up(errors=before)
