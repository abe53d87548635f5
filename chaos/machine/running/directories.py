"""The directories by which people know a running job: where its processes log, and where they work."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from chaos.machine.linux.procfs import PROC, all_pids, read_stat

_OUTPUTS = ("1", "2")

FileKey = tuple[int, int]
"""Device and inode: the same for a directory of this host and for a container that has it mounted."""


@dataclass(frozen=True)
class Directories:
    """Directories of one process, by paths as it sees them itself.

    ``cwd`` and ``logs`` are None where they cannot be read; ``logs`` holds the file that its output goes to, directly
    or through a ``tee``. ``keys`` belong to those two directories and to the directories between them; ``log_key`` is
    the key of the logs, or else of the working directory.
    """

    cwd: str | None = None
    logs: str | None = None
    keys: frozenset[FileKey] = frozenset()
    log_key: FileKey | None = None

    @property
    def shown(self) -> str:
        """The most telling directory."""
        return self.logs or self.cwd or "unknown"


def directories_of(pid: int, proc_root: Path = PROC) -> Directories:
    """Return where a process logs and works.

    Links of /proc lead to the files themselves, also in another mount namespace; their texts are paths in there.
    """
    place = proc_root / str(pid)
    cwd, logs, writer = _text(place / "cwd"), _log_directory(place, _OUTPUTS), place
    for tee in [] if logs is not None else tees_of(place, proc_root):
        if (logs := _log_directory(tee, opened(tee))) is not None:
            writer = tee
            break
    ordered = [*(_key(_inside(writer, path)) for path in _between(logs, cwd)), _key(place / "cwd")]
    keys = [key for key in ordered if key is not None]
    return Directories(cwd, logs, frozenset(keys), next(iter(keys), None))


def key_of(path: Path) -> FileKey | None:
    """Return the key of a directory of this host; None when there is none."""
    return _key(path)


def _between(logs: str | None, cwd: str | None) -> Iterator[PurePath]:
    """Yield the directory of the logs, and its parents up to the working directory if they lead there."""
    if logs is None:
        return
    path = PurePath(logs)
    yield path
    if cwd is not None and path.is_relative_to(cwd):
        yield from (parent for parent in path.parents if parent.is_relative_to(cwd))


def _log_directory(place: Path, numbers: Iterable[str]) -> str | None:
    """Return the directory of the first of these descriptors that is a plain file."""
    for number in numbers:
        link = place / "fd" / number
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


def tees_of(place: Path, proc_root: Path) -> list[Path]:
    """Return the ``tee`` processes that read the output of the process of this directory of /proc, by such directories.

    A pipe's name identifies it (pipe(7)).
    """
    pipes = {text for number in _OUTPUTS if (text := _text(place / "fd" / number) or "").startswith("pipe:")}
    if not pipes:
        return []
    stats = (read_stat(pid, proc_root) for pid in all_pids(proc_root))
    tees = [candidate.pid for candidate in stats if candidate is not None and candidate.comm == "tee"]
    return [place_of_tee for pid in sorted(tees) if _text((place_of_tee := proc_root / str(pid)) / "fd" / "0") in pipes]


def opened(place: Path) -> list[str]:
    """Return the numbers of the files that the process of this directory of /proc has opened itself."""
    try:
        numbers = os.listdir(place / "fd")  # noqa: PTH208 - names are wanted
    except OSError:
        return []
    return sorted((number for number in numbers if number.isdecimal() and int(number) > 2), key=int)


def _inside(place: Path, path: PurePath) -> Path:
    return place / "root" / path.relative_to(path.anchor)


def _text(link: Path) -> str | None:
    try:
        return str(link.readlink())
    except OSError:
        return None


def _key(path: Path) -> FileKey | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None
