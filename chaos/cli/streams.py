"""Standard input, output and error, whatever they are: closed, full, a pipe, a lost terminal, an old encoding.

No failure of a stream may end a command with a code that reads as a verdict.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from chaos.cli.encoding import showing_what_it_can

NAMES = ("standard input", "standard output", "standard error")


class OutputLost(Exception):
    """Standard output takes nothing more. The text is the reason.

    It is no OSError, so that no handler takes it for an error of a file that is read or written meanwhile.
    """


class Output:
    """Standard output: a failed write raises :class:`OutputLost`, unless its terminal has gone.

    ``lost`` says why it took nothing more, None as long as it did. Everything else is the stream's.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.lost: str | None = None

    def write(self, text: str) -> int:
        """Write, or pretend to once the terminal has gone."""
        try:
            return self._stream.write(text)
        except (OSError, ValueError) as error:
            self._leave(error)
            return len(text)

    def flush(self) -> None:
        """Flush the text that the stream still takes."""
        try:
            self._stream.flush()
        except (OSError, ValueError) as error:
            self._leave(error)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # click writes past this stream where it finds another one beneath
            raise AttributeError(name)
        return getattr(self._stream, name)

    def _leave(self, error: OSError | ValueError) -> None:
        discard(self._stream)
        if isinstance(error, OSError) and error.errno == errno.EIO:
            return
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        self.lost = self.lost or reason
        raise OutputLost(reason) from error


class Errors(Output):
    """Standard error: its failure is ignored, since no stream is left to report it."""

    def _leave(self, error: OSError | ValueError) -> None:
        discard(self._stream)


def hold_closed_descriptors() -> tuple[str, ...]:
    """Open the null device on each of the descriptors 0 to 2 that is closed, so that no file of ours can come there.

    Returns the names of the closed ones. Standard input cannot be read then, rather than being empty.
    """
    closed = []
    for descriptor, name in enumerate(NAMES):
        try:
            os.fstat(descriptor)
        except OSError:
            # The kernel gives the lowest number that is free, and all below are taken by now.
            os.open(os.devnull, os.O_WRONLY)
            closed.append(name)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    return tuple(closed)


@contextmanager
def guarded_streams() -> Iterator[Output]:
    """Let standard output and error show every text they can, and end as :class:`Output` and :class:`Errors` say."""
    before = sys.stdout, sys.stderr
    output, errors = Output(before[0]), Errors(before[1])
    with showing_what_it_can(before[0]), showing_what_it_can(before[1]):
        sys.stdout, sys.stderr = cast(TextIO, output), cast(TextIO, errors)
        try:
            yield output
        finally:
            for stream in (output, errors):
                try:
                    stream.flush()
                except OutputLost:  # kept in ``lost``
                    continue
            sys.stdout, sys.stderr = before


def discard(stream: TextIO) -> None:
    """Discard the buffered text, so that the interpreter's own flush at exit stays quiet."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError, io.UnsupportedOperation):  # no file, or closed
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
