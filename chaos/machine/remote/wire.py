"""The words between the harness and a remote helper: one JSON object a line, in both directions.

The remote helper says hello first, with the version of this protocol. Every request of the harness has a number and
gets exactly one answer with it; a message that the helper sends of its own accord is an event.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

PROTOCOL = 1
"""Both sides are of one version of chaos, since the harness ships the helper; a helper of another version is refused.
"""

MAX_LINE = 8 << 20
"""Bytes of a line. The longest are the list of a node's processes and a piece of a file."""


class NotTheProtocol(ValueError):
    """The received line does not follow this protocol."""


class Writer:
    """Writes messages, each in one piece, from any thread."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message. Raises OSError when the other side is gone."""
        line = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        with self._lock:
            self._write(line)


def messages(read: Callable[[], bytes]) -> Iterator[dict[str, Any]]:
    """Yield the other side's messages until ``read`` returns nothing.

    Raises NotTheProtocol, and what ``read`` raises.
    """
    buffer = bytearray()
    while chunk := read():
        buffer += chunk
        if b"\n" in chunk:
            *lines, rest = bytes(buffer).split(b"\n")
            for line in lines:
                yield _message(line)
            buffer = bytearray(rest)
        if len(buffer) > MAX_LINE:
            raise NotTheProtocol(f"a line of more than {MAX_LINE:,} bytes")


def _no_json(word: str) -> None:
    """Refuse NaN and the infinities, which Python takes for numbers of JSON."""
    raise ValueError(word)


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line, parse_constant=_no_json)
    except (ValueError, RecursionError) as error:
        raise NotTheProtocol(f"{line[:80]!r} is no JSON") from error
    if not isinstance(message, dict):
        raise NotTheProtocol(f"{line[:80]!r} is no JSON object")
    return message
