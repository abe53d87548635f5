"""The directories by which people know a running job: where its processes log, and where they work."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from chaos.platforms.procfs import PROC

FileKey = tuple[int, int]
"""Device and inode: the same for a directory of this host and for a container that has it mounted."""


@dataclass(frozen=True)
class Directories:
    """Of one process, by paths as it sees them itself.

    ``cwd`` and ``logs`` are None where they cannot be read; ``logs`` is where the file lies that its output goes to.
    ``keys`` are those two, and what
    lies between them; ``log_key`` is that of the logs, or else of the working directory.
    """

    cwd: str | None = None
    logs: str | None = None
    keys: frozenset[FileKey] = frozenset()
    log_key: FileKey | None = None

    @property
    def shown(self) -> str:
        """The one that tells most."""
        return self.logs or self.cwd or "unknown"


def directories_of(pid: int, proc_root: Path = PROC) -> Directories:
    """Where a process logs and works.

    Links of /proc lead to the files themselves, also in another mount namespace; their texts are paths in there.
    """
    place = proc_root / str(pid)
    cwd, logs = _text(place / "cwd"), _log_directory(place)
    ordered = [*(_key(_inside(place, path)) for path in _between(logs, cwd)), _key(place / "cwd")]
    keys = [key for key in ordered if key is not None]
    return Directories(cwd, logs, frozenset(keys), next(iter(keys), None))


def key_of(path: Path) -> FileKey | None:
    """What a directory of this host is known by; None when there is none."""
    return _key(path)


def _between(logs: str | None, cwd: str | None) -> Iterator[PurePath]:
    """The directory of the logs, and its parents up to the working directory if they lead there."""
    if logs is None:
        return
    path = PurePath(logs)
    yield path
    if cwd is not None and path.is_relative_to(cwd):
        yield from (parent for parent in path.parents if parent.is_relative_to(cwd))


def _log_directory(place: Path) -> str | None:
    for number in (1, 2):
        link = place / "fd" / str(number)
        text = _text(link)
        if text is None:
            continue
        try:
            written = link.stat()
            named = _inside(place, PurePath(text)).stat()
        except OSError:  # deleted, or moved away
            continue
        if stat.S_ISREG(written.st_mode) and (written.st_dev, written.st_ino) == (named.st_dev, named.st_ino):
            return str(PurePath(text).parent)
    return None


def _inside(place: Path, path: PurePath) -> Path:
    return place / "root" / path.relative_to(path.anchor)


def _text(link: Path) -> str | None:
    try:
        return str(link.readlink())
    except OSError:
        return None


def _key(path: Path) -> FileKey | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None
