"""The directories by which people know a running job: where its processes log, and where they work."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

from chaos.machine.linux.procfs import PROC, all_pids, read_stat

_OUTPUTS = ("1", "2")
_ATTEMPT = re.compile(r"attempt_\d{1,10}")
_TORCHRUN_LEVELS = 3

FileKey = tuple[int, int]
"""Device and inode: the same for a directory of this host and for a container that has it mounted."""


@dataclass(frozen=True)
class Directories:
    """Directories of one process, by paths as it sees them itself.

    ``cwd`` and ``logs`` are None where they cannot be read; ``logs`` holds the file that its output goes to, directly
    or through a ``tee``. ``above`` are the directories above the logs that name the job too: those up to the working
    directory, and torchrun's, up to its ``--log-dir``. ``keys`` belong to all of these; ``log_key`` is the key of the
    logs, or else of the working directory.
    """

    cwd: str | None = None
    logs: str | None = None
    keys: frozenset[FileKey] = frozenset()
    log_key: FileKey | None = None
    above: tuple[str, ...] = ()

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
    paths = _between(logs, cwd)
    ordered = [*(_key(_inside(writer, path)) for path in paths), _key(place / "cwd")]
    keys = [key for key in ordered if key is not None]
    return Directories(cwd, logs, frozenset(keys), next(iter(keys), None), tuple(map(str, paths[1:])))


def key_of(path: Path) -> FileKey | None:
    """Return the key of a directory of this host; None when there is none."""
    return _key(path)


def _between(logs: str | None, cwd: str | None) -> list[PurePath]:
    """Return the directory of the logs, and its parents up to the working directory if they lead there.

    torchrun logs below its ``--log-dir`` in ``RUN-ID_RANDOM/attempt_N/LOCAL-RANK/`` (PyTorch 2.13).
    """
    if logs is None:
        return []
    path = PurePath(logs)
    of_torchrun = path.name.isdecimal() and _ATTEMPT.fullmatch(path.parent.name) is not None
    named = path.parents[: _TORCHRUN_LEVELS if of_torchrun else 0]
    if cwd is not None and path.is_relative_to(cwd):
        named = [parent for parent in path.parents if parent in named or parent.is_relative_to(cwd)]
    return [path, *named]


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
