"""Walking directories that somebody else has made, however deep: neither recursion nor a path grows with them.

Directories deeper than any job's saves are left out, and the caller learns of them: an incomplete search must not claim
that there is nothing. A directory that is gone when its turn comes is no error: jobs remove their own files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Optional

MAX_ENTRIES = 1_000_000
"""Files and directories in one walk, at most. A thousand ranks that each save a hundred files have a tenth."""

MAX_LEVELS = 256
"""Levels of directories below the start of a walk. Every directory of a walk by descriptors may be open."""

_LONGEST = 4096 - 1 - 256
"""Bytes of a directory's path with which every entry's path still fits the kernel's limit (PATH_MAX)."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = (FileNotFoundError, NotADirectoryError)

Unseen = Optional[Callable[[OSError], None]]
"""A function called with the reason why a directory was left out; None where that does not matter."""


class TooDeep(OSError):
    """A walk has left out a part of a directory. ``filename`` is the start of the walk, ``strerror`` the reason."""

    def __init__(self, top: str, why: str) -> None:
        super().__init__(errno.ENAMETOOLONG, why, top)

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def raise_unseen(error: OSError) -> None:
    """Raise every error of a walk, for a caller that must see every directory."""
    raise error


def raise_too_deep(error: OSError) -> None:
    """Raise only that a directory is too deep, for a caller that passes over directories this user cannot read."""
    if isinstance(error, TooDeep):
        raise error


def walk(top: str | os.PathLike[str], onerror: Unseen = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each directory from top to bottom as ``os.walk`` does: with the names of its directories and other entries.

    No link below ``top`` is followed. The caller may change the list of directories, to enter fewer or in another
    order. ``onerror`` is called with the OSError of a directory that cannot be read, and once with TooDeep where
    something was left out; an error that it raises ends the walk.
    """
    start = os.fspath(top)
    too_deep = _once(start, onerror)
    waiting = [(start, 0)]
    entries = 0
    while waiting:
        if entries > MAX_ENTRIES:
            too_deep(f"has more than {MAX_ENTRIES:,} files and directories below")
            return
        path, level = waiting.pop()
        # Read as late as possible: a job may put a link in place of a directory meanwhile.
        if level and os.path.islink(path):  # noqa: PTH114 - never raises
            continue
        if len(os.fsencode(path)) > _LONGEST:
            too_deep("has directories below with paths that are too long")
            continue
        try:
            directories, others, links = _listed(path)
        except OSError as error:
            if onerror is not None and not isinstance(error, _GONE):
                onerror(error)
            continue
        entries += len(directories) + len(others)
        yield path, directories, others
        below = [name for name in reversed(directories) if name not in links]
        if level < MAX_LEVELS:
            waiting.extend((os.path.join(path, name), level + 1) for name in below)  # noqa: PTH118 - as os.walk gives it
        elif below:
            too_deep(f"has more than {MAX_LEVELS} levels of directories below")


def entries_below(top: Path, onerror: Unseen = None) -> list[Path]:
    """Return everything below a directory, sorted, as ``sorted(top.rglob("*"))``; links are in it and are not followed.

    ``onerror`` as in :func:`walk`.
    """
    return sorted(Path(path, name) for path, *both in walk(top, onerror) for names in both for name in names)


def walk_opened(top: int, onerror: Unseen = None) -> Iterator[tuple[str, list[str], list[str], int]]:
    """Yield each directory from top to bottom as ``os.fwalk`` does: as :func:`walk`, with its descriptor.

    The descriptor is valid until the next directory. ``top`` is an open directory, and stays open. Paths begin with
    ``.`` for it, in errors too. Directories are reached by the descriptors of their parents, so no link leads anywhere,
    whatever is moved meanwhile.
    """
    too_deep = _once(".", onerror)
    opened: list[tuple[int, str, list[str]]] = []  # from the top down, each with its remaining entries
    path, name, above = ".", ".", top
    try:
        while True:
            try:
                descriptor = os.open(name, _DIRECTORY, dir_fd=above)
                opened.append((descriptor, path, []))
                directories, others, links = _listed(descriptor)
            except OSError as error:
                error.filename = path
                if onerror is not None and not isinstance(error, _GONE):
                    onerror(error)
            else:
                yield path, directories, others, descriptor
                below = [directory for directory in reversed(directories) if directory not in links]
                if len(opened) <= MAX_LEVELS:
                    opened[-1][2].extend(below)
                elif below:
                    too_deep(f"has more than {MAX_LEVELS} levels of directories below")
            while opened and not opened[-1][2]:
                os.close(opened.pop()[0])
            if not opened:
                return
            above, path, waiting = opened[-1]
            name = waiting.pop()
            path = f"{path}/{name}"
    finally:
        for descriptor, _, _ in opened:
            os.close(descriptor)


def _listed(directory: str | int) -> tuple[list[str], list[str], set[str]]:
    """Return the directories, links to them included, the other entries, and which are links.

    An entry whose type is unknown is an other entry.
    """
    directories: list[str] = []
    others: list[str] = []
    links: set[str] = set()
    with os.scandir(directory) as entries:
        for entry in entries:
            try:
                is_directory = entry.is_dir()
            except OSError:
                is_directory = False
            if not is_directory:
                others.append(entry.name)
                continue
            directories.append(entry.name)
            if entry.is_symlink():
                links.add(entry.name)
    return directories, others, links


def _once(top: str, onerror: Unseen) -> Callable[[str], None]:
    """Return a function that reports a directory as too deep the first time: a job may have made very many of them."""
    reported: list[str] = []

    def report(why: str) -> None:
        if onerror is not None and not reported:
            reported.append(why)
            onerror(TooDeep(top, why))

    return report
