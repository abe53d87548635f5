"""Errors of the checkpoint reader when it refuses a file."""

from __future__ import annotations

from pathlib import Path

_LONGEST = 1000
"""Longest problem in characters: a problem may quote a name from the file."""


class CheckpointError(Exception):
    """The file is missing or damaged. The text names the file, the place in it and the damage."""

    def __init__(self, path: Path, problem: str, offset: int | None = None) -> None:
        problem = problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}…"
        self.path = path
        self.problem = problem
        self.offset = offset
        place = "" if offset is None else f" at byte {offset}"
        super().__init__(f"{path}{place}: {problem}")


class UnknownContent(Exception):
    """The parser of a format has met content that the format allows and this reader does not know. The text names it.

    The caller knows the file and the place, and raises CheckpointNotSupported instead.
    """


class CheckpointNotSupported(CheckpointError):
    """The file may be sound, but this reader cannot judge it: over the size limit, or a kind of value it does not know.

    A check that meets this error has no evidence either way.
    """
