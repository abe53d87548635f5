"""Tidying a reports directory: removing run directories whose making was interrupted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from chaos.base.clock import Clock
from chaos.base.wait import DeadlineExpired
from chaos.store.directory import RUN_FILE, RUN_NAME, creation_lock, unfinished_files
from chaos.store.ownership import LOCK_NAME, is_live


def tidy_reports(reports: Path, clock: Clock) -> list[Path]:
    """Return the run directories, after removing those whose making was interrupted.

    Where none can be removed (read-only reports, a lock that a stopped harness holds) the runs are healed all the same.
    """
    with no_creation(reports, clock) as locked:
        if not locked:
            return runs_in(reports)
        for path in filter(_is_own, unfinished_files(reports)):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        made = []
        for directory in _directories(reports):
            if _is_run(directory):
                made.append(directory)
                continue
            with contextlib.suppress(OSError):
                if _is_own(directory) and not is_live(directory):
                    _remove_stillborn(directory)
    return made


def runs_in(reports: Path) -> list[Path]:
    """Return the run directories, as they are; none where ``reports`` does not exist."""
    return [path for path in _directories(reports) if _is_run(path)] if reports.is_dir() else []


@contextlib.contextmanager
def no_creation(reports: Path, clock: Clock) -> Iterator[bool]:
    """Keep directories from being made during the block; yield False where the lock for it cannot be had.

    The lock protects directories without a run.json yet. A run with one is owned by its own lock, and is healed without
    this lock.
    """
    try:
        lock = creation_lock(reports, clock=clock)
    except (OSError, DeadlineExpired):
        yield False
        return
    with lock:
        yield True


def _directories(reports: Path) -> list[Path]:
    return [path for path in sorted(reports.iterdir()) if path.is_dir() and not path.is_symlink()]


def _is_own(path: Path) -> bool:
    """Return whether the directory belongs to this user: the half-made directories of others are theirs."""
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return False


def _is_run(directory: Path) -> bool:
    try:
        (directory / RUN_FILE).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # healing it finds out why it cannot be read, and who owns it
        return RUN_NAME.fullmatch(directory.name) is not None
    return True


def _remove_stillborn(directory: Path) -> None:
    """Remove a directory whose making was interrupted. A directory that holds anything else is not the harness's."""
    leftovers = unfinished_files(directory)
    names = {path.name for path in directory.iterdir()}
    if RUN_NAME.fullmatch(directory.name) and names <= {LOCK_NAME, *(path.name for path in leftovers)}:
        for path in [*leftovers, directory / LOCK_NAME]:
            path.unlink(missing_ok=True)
        directory.rmdir()
