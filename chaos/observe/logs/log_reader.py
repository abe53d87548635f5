"""The base class of log readers: each reads the lines of one program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import tzinfo

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.wall_time import WallTime


class LogReader(ABC):
    """Reads the lines of one program. Each reader derives from this class, and overrides its attributes where needed.

    Readers of other packages come from the entry point group ``chaos.readers``. ``tz`` is the zone of the times in the
    log, None the local one.
    """

    name: str
    """Its name in the registry."""

    own_rank: bool = False
    """Whether its lines are a rank's own statements: an event that names no rank gets the file's rank, if known."""

    only_when_chosen: bool = False
    """Whether its lines mean nothing in another log: it is chosen after all others, and reads only if chosen."""

    asked_last: bool = False
    """Whether it takes lines that all others leave, those of other packages included, even in a log that it
    recognises."""

    def __init__(self, tz: tzinfo | None = None) -> None:
        self._wall = WallTime(tz)

    @abstractmethod
    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return whether the program wrote the log that begins with these lines."""

    @abstractmethod
    def read(self, line: str) -> LogEvent | None:
        """Return the event of one line without its line feed, None if no form of the line is known."""

    def read_of(self, line: str, rank: int) -> LogEvent | None:
        """Return the event of a line that PyTorch has marked with the ``rank`` of the process that wrote it.

        The mark is removed. By default the event of the line alone.
        """
        del rank
        return self.read(line)

    def read_unended(self, line: str) -> LogEvent | None:
        """Return the event of the last line of a log without a line feed; None by default, since it may be half a line.

        Only for a form that shows that nothing is missing, such as a whole JSON object.
        """
        del line
        return None
