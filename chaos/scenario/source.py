"""The text of a scenario file, and places in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from chaos.base.named_files import is_pipe, read_piped
from chaos.base.plain_files import UnreadableFile
from chaos.scenario.errors import Problem, ScenarioError, printable

MAX_BYTES = 1024 * 1024
"""Largest scenario file."""

_WINDOW = 120

_FORBIDDEN_ASCII = re.compile("[^\t\n\r\x20-\x7e]")


@cache
def _forbidden() -> re.Pattern[str]:
    """Return the characters that YAML does not call printable, and the line separators that no editor counts as lines.

    Such a range takes longer to compile than most scenarios to read, and few have a character beyond ASCII.
    """
    return re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Source:
    """The text of a file, with the name that errors give the file."""

    file: str
    text: str

    @cached_property
    def _lines(self) -> list[str]:
        return re.split("\r\n|\n|\r", self.text)

    def line(self, number: int) -> str:
        """Return the line of that number, counted from 1; empty past the end."""
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def problem(self, line: int, column: int, message: str, *, text: str = "", hint: str = "") -> Problem:
        """Return a problem at a line and column, both counted from 1."""
        whole = self.line(line)
        at = max(0, min(column - 1, len(whole)))
        start = max(0, at - _WINDOW // 2) if len(whole) > _WINDOW else 0
        # Tabs and other odd characters become one blank each, so that the caret stays under its text.
        excerpt = "".join(char if char.isprintable() else " " for char in whole[start : start + _WINDOW])
        return Problem(self.file, line, column, message, printable(text[:_WINDOW]), hint, excerpt, at - start)


def read_source(
    path: Path,
    what: str = "a scenario file",
    most: int = MAX_BYTES,
    shown: str | None = None,
    *,
    pipes: bool = True,
) -> Source:
    """Read a scenario file, or another YAML file of ``most`` bytes; ``what`` is its name in messages.

    A pipe and ``-``, standard input, are read once and kept: further readers get the same. ``pipes`` is False for a
    path from a file and not from the user: it may be a plain file only. ``shown`` is its name in messages, the path
    unless given.

    Raises ScenarioError if it cannot be read, is larger than ``most``, is not UTF-8 or holds a character that YAML
    does not allow.
    """
    file = printable(str(path)) if shown is None else shown

    def unreadable(message: str, hint: str = "") -> ScenarioError:
        return ScenarioError([Problem(file, 0, 0, message, hint=hint)])

    try:
        if pipes and is_pipe(path):
            raw = read_piped(path, most)
        elif not path.is_file():
            raise unreadable("is not a file" if path.exists() else "there is no such file")
        else:
            with path.open("rb") as stream:
                raw = stream.read(most + 1)
    except UnreadableFile as error:
        raise unreadable(str(error.strerror)) from None
    except OSError as error:
        raise unreadable(f"cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise unreadable("is not a usable file name") from None
    if len(raw) > most:
        raise unreadable(f"is larger than {most // 1024} KiB, the limit for {what}")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        good = Source(file, raw[: error.start].decode("utf-8"))
        raise _at_end(good, f"byte 0x{raw[error.start]:02x} is not UTF-8", "save the file as UTF-8") from None
    source = Source(file, text.removeprefix("\ufeff"))
    forbidden = _FORBIDDEN_ASCII if source.text.isascii() else _forbidden()
    if bad := forbidden.search(source.text):
        message = f"character U+{ord(bad[0]):04X} is not allowed"
        hint = 'inside double quotes it can be written as an escape, such as "\\x07"' if bad[0] != "\0" else ""
        raise _at_end(Source(file, source.text[: bad.start()]), message, hint)
    return source


def _at_end(source: Source, message: str, hint: str) -> ScenarioError:
    lines = re.split("\r\n|\n|\r", source.text)
    return ScenarioError([source.problem(len(lines), len(lines[-1]) + 1, message, hint=hint)])
