"""The pause of a rank, by its own record: it is in ``tft_pause_train``, and the SDK has noticed it.

Every rank passes ``tft_pause_train`` after every step. Only where it blocks does the SDK call the handler
``stream_sync``, before it reports that the rank is paused.
"""

from __future__ import annotations

from pathlib import Path

from chaos.history.jsonl import decode_shown, read_lines

_EVENTS = (b'"pause.enter"', b'"pause.exit"', b'"handler.exit"')


def paused_at(record: Path) -> int | None:
    """Return the step after which the rank is paused, None if it is not."""
    inside: int | None = None
    noticed = False
    for line in read_lines(record):
        if line.text is None or line.torn or not any(name in line.text for name in _EVENTS):
            continue
        if (event := decode_shown(line.text)) is None:
            continue
        if event.get("event") == "pause.enter":
            inside, noticed = event.get("step"), False
        elif event.get("event") == "pause.exit":
            inside, noticed = None, False
        elif event.get("event") == "handler.exit" and event.get("name") == "stream_sync" and event.get("ok"):
            noticed = True
    return inside if noticed else None
