"""Leftovers in a job's directory of a harness killed in the middle of one act, which has no undo step.

A storage fault makes a directory that it removes at once, and tries whether a file can be made. Both exist for
microseconds, both are empty, and both have names of the harness's own. The digests that replace a large checkpoint are
written beside it first. All of them are removed by the descriptor of their directory, which is reached through no link.
"""

from __future__ import annotations

import functools
import os
import stat
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path

from chaos.base.walking import walk_opened
from chaos.faults.nodes.on_node import RESTORE as RESTORE_NODE
from chaos.faults.storage.storage import PROBE, UNMOUNT
from chaos.history.ledger import UndoStep
from chaos.machine.linux.mounts import REMOVED
from chaos.observe.checkpoints.layout import UNFINISHED_DIGESTS

_MADE_BY = frozenset({UNMOUNT, RESTORE_NODE})
"""Undo actions of the faults whose acts make such empty leftovers. Digests are kept after any run."""


def find_cut_off(run_dir: Path, steps: Iterable[UndoStep]) -> list[Path]:
    """Return the files and directories that such an act has left in the job; ``steps`` are all of the run's ledger."""
    return [path for path, _ in _left_by_acts(run_dir / "job", steps, lambda error: None)]


def remove_cut_off(run_dir: Path, steps: Iterable[UndoStep]) -> tuple[list[str], list[str]]:
    """Remove the leftovers. Returns, in words, what was removed, and what is left with the reason.

    No process may work in the run any more, and nothing may be mounted in it: a file system that a fault has frozen
    would block whoever removes a file.
    """
    done: list[str] = []
    failed: list[str] = []

    def unread(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            failed.append(f"{run_dir / 'job' / error.filename} cannot be looked into: {error.strerror}")

    for path, remove in _left_by_acts(run_dir / "job", steps, unread):
        try:
            remove()
            done.append(f"removed {path}")
        except FileNotFoundError:
            continue
        except OSError as error:
            failed.append(f"{path} cannot be removed: {error.strerror}")
    return done, failed


def _left_by_acts(
    job: Path, steps: Iterable[UndoStep], unread: Callable[[OSError], None]
) -> Iterator[tuple[Path, Callable[[], None]]]:
    """Yield each leftover with the function that removes it, to be called before the next leftover is asked for."""
    by_faults = any(step.action in _MADE_BY for step in steps)
    try:
        # A pipe in its place would block an open that does not ask for a directory.
        top = os.open(job, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if by_faults:
            unread(error)
        return
    try:
        # Digests are written in no directory that this user cannot read, and in none that is too deep to be searched:
        # only a fault may have made the leftovers there.
        for below, directories, files, descriptor in walk_opened(top, unread if by_faults else None):
            place = job / below
            for name in directories if by_faults else ():
                if any(name == REMOVED.format(other) for other in directories) and _is_empty(name, descriptor):
                    yield place / name, functools.partial(os.rmdir, name, dir_fd=descriptor)
            if by_faults and PROBE in files and _is_empty(PROBE, descriptor):
                yield place / PROBE, functools.partial(os.unlink, PROBE, dir_fd=descriptor)
            for name in files:
                if _is_of_checkpoint(name, files) and _is_own_file(name, descriptor):
                    yield place / name, functools.partial(os.unlink, name, dir_fd=descriptor)
    finally:
        os.close(top)


def _is_of_checkpoint(name: str, files: Container[str]) -> bool:
    return name.endswith(UNFINISHED_DIGESTS) and name.removesuffix(UNFINISHED_DIGESTS) in files


def _is_own_file(name: str, place: int) -> bool:
    """Return whether the name is a plain file of this user; a link is not."""
    try:
        status = os.stat(name, dir_fd=place, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _is_empty(name: str, place: int) -> bool:
    """Return whether the name is an empty directory or an empty plain file of this user; a link is neither."""
    try:
        status = os.stat(name, dir_fd=place, follow_symlinks=False)
        if status.st_uid != os.geteuid():
            return False
        if stat.S_ISREG(status.st_mode):
            return status.st_size == 0
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    except OSError:
        return False
    try:
        with os.scandir(descriptor) as entries:
            return next(entries, None) is None
    finally:
        os.close(descriptor)
