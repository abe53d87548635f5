"""What a log reader is: it reads the lines of one program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import tzinfo

from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.wall_time import WallTime


class LogReader(ABC):
    """Reads the lines of one program. Each reader derives from it, and has what stands here unless it says otherwise.

    Readers of other packages come from the entry point group ``chaos.readers``. ``tz`` is the zone of the times in the
    log, None the local one.
    """

    name: str
    """Its name in the registry."""

    own_rank: bool = False
    """Whether it reads what a rank says of itself: an event that names no rank gets that of the file, if it has one."""

    only_when_chosen: bool = False
    """Whether its lines mean nothing in another log: it is chosen after all others, and reads only where it is."""

    asked_last: bool = False
    """Whether it takes whatever others leave."""

    def __init__(self, tz: tzinfo | None = None) -> None:
        self._wall = WallTime(tz)

    @abstractmethod
    def recognises(self, first_lines: Sequence[str]) -> bool:
        """Return whether a log that begins with these lines is of the program's."""

    @abstractmethod
    def read(self, line: str) -> LogEvent | None:
        """Return the event of one line without its line feed, None when the line says nothing that is known."""
