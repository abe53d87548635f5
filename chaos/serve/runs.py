"""The runs of a reports directory that are shown: directories in it, of the user or of the owner of the directory.

No path is made from a request: its name is looked up in the list of the directory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chaos.report.index.rows import Unread
from chaos.store.ownership import is_live

_OF_A_RUN = ("run.json", "plan.json")
"""A directory with one of these plain files is a run's directory."""

Fingerprint = tuple[tuple[str, int, int, int], ...]
"""The state of files by name: inode, size and time of the last change. Another one means other contents."""


@dataclass(frozen=True)
class Listing:
    """The runs by their names, and the runs that are not shown."""

    runs: dict[str, Path]
    refused: list[Unread]


@dataclass(frozen=True)
class RunDirectories:
    """The directories of runs in ``reports``."""

    reports: Path

    def owners(self) -> set[int]:
        """Return the users whose files are shown: this one, and the owner of the directory."""
        return {os.geteuid(), self.reports.stat().st_uid}

    def listing(self) -> Listing:
        """Return the runs that are there now. Raises OSError when the directory cannot be read."""
        runs: dict[str, Path] = {}
        refused: list[Unread] = []
        owners = self.owners()
        with os.scandir(self.reports) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                # A link is another name of a run, as `latest` is, or leads elsewhere.
                if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
                    continue
                path = self.reports / entry.name
                owner = _owner_of_run(path)
                if owner is not None and owner not in owners:
                    refused.append(Unread(entry.name, f"belongs to user {owner}, and is not shown"))
                elif owner is not None:
                    runs[entry.name] = path
        return Listing(runs, refused)

    def find(self, name: str) -> Path | None:
        """Return the directory of the run of that name, None where none is shown."""
        return self.listing().runs.get(name)


def _owner_of_run(path: Path) -> int | None:
    """Return the user who owns a directory, None unless it is that of a run."""
    for name in _OF_A_RUN:
        try:
            if stat.S_ISREG((path / name).lstat().st_mode):
                return path.lstat().st_uid
        except OSError:
            continue
    return None


def in_progress(path: Path) -> bool:
    """Return whether a harness works on the run now. A lock that may not be looked at is another user's."""
    try:
        return is_live(path)
    except OSError:
        return False


def fingerprint(path: Path) -> Fingerprint:
    """Return the state of the files of a run that its page is made from."""
    return tuple(sorted(_states(path)))


def _states(path: Path) -> Iterator[tuple[str, int, int, int]]:
    for place in (path, path / "history", path / "baseline", path / "baseline" / "history", path / "logs"):
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    yield entry.path, status.st_ino, status.st_size, status.st_mtime_ns
        except OSError:
            continue
