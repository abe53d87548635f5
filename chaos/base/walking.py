"""Walking directories that somebody else has made, however deep: neither recursion nor a path grows with them.

What lies deeper than any job saves is not looked at, and whoever walks is told so: a search that has not seen all must
not say that there is nothing. A directory that is gone when its turn comes is no error: jobs remove what they made.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Optional

MAX_ENTRIES = 1_000_000
"""Files and directories that one walk looks at. A thousand ranks that each save a hundred files have a tenth."""

MAX_LEVELS = 256
"""Levels of directories below the one where a walk begins. Every directory of a walk by descriptors may be open."""

_LONGEST = 4096 - 1 - 256
"""Bytes of a directory's path with which every path of an entry of it can still be given to the kernel (PATH_MAX)."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = (FileNotFoundError, NotADirectoryError)

Unseen = Optional[Callable[[OSError], None]]
"""What is called with the reason why a directory was not looked into; None where that does not matter."""


class TooDeep(OSError):
    """Not all that is below a directory was looked at. ``filename`` is where the walk began, ``strerror`` says why."""

    def __init__(self, top: str, why: str) -> None:
        super().__init__(errno.ENAMETOOLONG, why, top)

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def raise_unseen(error: OSError) -> None:
    """For whoever must see every directory: raise what a walk reports."""
    raise error


def raise_too_deep(error: OSError) -> None:
    """For whoever passes over directories that this user cannot read: raise only that a directory is too deep."""
    if isinstance(error, TooDeep):
        raise error


def walk(top: str | os.PathLike[str], onerror: Unseen = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """As ``os.walk`` from top to bottom: each directory with the names of its directories and of its other entries.

    No link below ``top`` is followed. The caller may change the list of directories, to enter fewer or in another
    order. ``onerror`` is called with the OSError of a directory that cannot be read, and once with TooDeep where
    something was left out; what it raises ends the walk.
    """
    start = os.fspath(top)
    too_deep = _once(start, onerror)
    waiting = [(start, 0)]
    seen = 0
    while waiting:
        if seen > MAX_ENTRIES:
            too_deep(f"has more than {MAX_ENTRIES:,} files and directories below")
            return
        path, level = waiting.pop()
        # Asked for as late as possible: a job may put a link in the place of a directory meanwhile.
        if level and os.path.islink(path):  # noqa: PTH114 - never raises
            continue
        if len(os.fsencode(path)) > _LONGEST:
            too_deep("has directories below whose paths are too long")
            continue
        try:
            directories, others, links = _listed(path)
        except OSError as error:
            if onerror is not None and not isinstance(error, _GONE):
                onerror(error)
            continue
        seen += len(directories) + len(others)
        yield path, directories, others
        below = [name for name in reversed(directories) if name not in links]
        if level < MAX_LEVELS:
            waiting.extend((os.path.join(path, name), level + 1) for name in below)  # noqa: PTH118 - as os.walk gives it
        elif below:
            too_deep(f"has more than {MAX_LEVELS} levels of directories below")


def entries_below(top: Path, onerror: Unseen = None) -> list[Path]:
    """Return everything below a directory, sorted, as ``sorted(top.rglob("*"))``; links are in it and are not followed.

    ``onerror`` as of :func:`walk`.
    """
    return sorted(Path(path, name) for path, *both in walk(top, onerror) for names in both for name in names)


def walk_opened(top: int, onerror: Unseen = None) -> Iterator[tuple[str, list[str], list[str], int]]:
    """As ``os.fwalk`` from top to bottom: as :func:`walk`, with a descriptor of each directory that is valid meanwhile.

    ``top`` is an open directory, and stays open. Paths begin with ``.`` for it, those of errors too. Directories are
    reached by the descriptors of those above, so no link leads anywhere, whatever is moved meanwhile.
    """
    too_deep = _once(".", onerror)
    opened: list[tuple[int, str, list[str]]] = []  # from the top down, each with what is still to be entered
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
    """Directories, links to them included, other entries, and which are links; what cannot be told is another entry."""
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
    """Reports that something is too deep the first time: a job may have made very many such directories."""
    reported: list[str] = []

    def report(why: str) -> None:
        if onerror is not None and not reported:
            reported.append(why)
            onerror(TooDeep(top, why))

    return report
