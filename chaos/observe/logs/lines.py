"""Bytes in, lines out, with bounded memory."""

from __future__ import annotations

LINE_LIMIT = 64 << 10


class LineSplitter:
    """Splits a stream of bytes into lines.

    Only complete lines are returned: a writer that was killed leaves the beginning of a line, and half a number is not
    a fact. A line over ``limit`` bytes is cut there; the rest of it is thrown away. ``lines`` counts the lines
    returned, ``cut`` the lines cut. ``torn`` says whether an unfinished line is waiting. Bytes that are not UTF-8 are
    replaced, a carriage return at the end is removed.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._waiting = b""
        self._skipping = False
        self.lines = 0
        self.cut = 0

    @property
    def torn(self) -> bool:
        """Whether bytes came after the last line feed."""
        return bool(self._waiting)

    @property
    def rest(self) -> str:
        """The bytes after the last line feed, as text. They are a whole line only if their form shows it."""
        return self._waiting.removesuffix(b"\r").decode("utf-8", "replace")

    def feed(self, chunk: bytes) -> list[str]:
        """Return the lines that ``chunk`` completes. The memory needed is about the chunk plus one line."""
        result = []
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._append(part)
            result.append(self._waiting.removesuffix(b"\r").decode("utf-8", "replace"))
            self.lines += 1
            self._waiting, self._skipping = b"", False
        self._append(rest)
        return result

    def _append(self, part: bytes) -> None:
        if self._skipping:
            return
        self._waiting += part
        if len(self._waiting) > self._limit:
            self._waiting = self._waiting[: self._limit]
            self._skipping = True
            self.cut += 1
