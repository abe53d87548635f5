"""The base of readers of lines that each begin with a prefix of their own: time, place and writer."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.log_reader import LogReader


class PrefixedReader(LogReader):
    """A reader of lines with the prefix ``prefix``. ``tz`` is the zone of the times in the log, None the local one."""

    prefix: ClassVar[re.Pattern[str]]

    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return whether any of the lines has this log's prefix."""
        return any(self.prefix.match(line) for line in first_lines)

    def read(self, line: str) -> LogEvent | None:
        """Return the event of a line, None if its form is unknown."""
        match = self.prefix.match(line)
        return self.bare(line) if match is None else self.event_of(match, line[match.end() :])

    @abstractmethod
    def event_of(self, prefix: re.Match[str], message: str) -> LogEvent | None:
        """Return the event of a message and the prefix before it."""

    def bare(self, line: str) -> LogEvent | None:
        """Return the event of a line without the prefix: None for most logs."""
        del line
        return None
