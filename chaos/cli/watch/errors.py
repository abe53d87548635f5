"""Errors of unknown forms: a watcher prints the first ones of each log, and at the end the number of the others."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chaos.attach.event import JobEvent

FIRST = 5
"""Errors of one log that get a line each: a broken program writes thousands."""


class FirstErrors:
    """Counts the errors of each log."""

    def __init__(self) -> None:
        self._of_log: Counter[str] = Counter()

    def shows(self, event: JobEvent) -> bool:
        """Return whether the event gets a line: only the later errors of a log do not."""
        if event.event != "log" or event.before or not str(event.data.get("kind")).endswith(".error"):
            return True
        file = str(event.data.get("file"))
        self._of_log[file] += 1
        return self._of_log[file] <= FIRST

    def left(self) -> str | None:
        """Return the number of hidden errors in words, None where all were shown."""
        more = {file: count - FIRST for file, count in self._of_log.items() if count > FIRST}
        if not more:
            return None
        most = max(more, key=lambda file: more[file])
        logs = most if len(more) == 1 else f"{len(more)} logs, most in {most}"
        return f"{sum(more.values())} more lines of level ERROR in {logs}: chaos logs FILE --kind error shows them"
