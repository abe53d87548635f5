"""Standard output and error on a terminal that may be closed: what nobody can read any more goes nowhere, quietly."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast


class Terminal:
    """A text stream that outlives its terminal. Other errors pass through, and so does everything else it can do."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or pretend to once the terminal has gone."""
        try:
            return self._stream.write(text)
        except OSError as error:
            self._leave(error)
            return len(text)

    def flush(self) -> None:
        """Flush what the terminal can still show."""
        try:
            self._stream.flush()
        except OSError as error:
            self._leave(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _leave(self, error: OSError) -> None:
        if error.errno != errno.EIO:
            raise error
        discard(self._stream)


@contextmanager
def outliving_their_terminal() -> Iterator[None]:
    """Let standard output and error outlive the terminal that they are on: the command ends as it would have."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, Terminal(stream)) if _is_terminal(stream) else stream for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _is_terminal(stream: TextIO) -> bool:
    """Whether it is one, or was: of one that has gone already isatty(3) says that it is none."""
    try:
        return stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
    except OSError:  # not a file at all
        return False


def discard(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that the interpreter's own flush at exit stays quiet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
