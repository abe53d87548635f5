"""Undoing storage faults: takes a mount away from the directory that a job saves in, and keeps all written files."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path

from chaos.base.walking import raise_unseen, walk
from chaos.faults.action import CannotUndo, UndoContext
from chaos.faults.storage.disk_full import SOURCE
from chaos.faults.storage.own_disk import image_of, is_own
from chaos.history.ledger import UndoStep
from chaos.machine.linux.disk_image import flush, mount_image, thaw
from chaos.machine.linux.mounts import mounts_at, unmount
from chaos.machine.linux.permissions import directories_in, is_immutable, set_immutable
from chaos.store.directory import RunDirectoryError, read_run


def unmount_storage(step: UndoStep, context: UndoContext) -> str:
    """Unmount the directory. Arguments: path, absolute, inside the run's directory and without links or ``..``."""
    return unmount_topmost(_own_path(step, context))


def thaw_storage(step: UndoStep, context: UndoContext) -> str:
    """Let the writers to a frozen file system go on. Arguments: path, as in :func:`unmount_storage`."""
    path = _own_path(step, context)
    if not mounts_at(path):
        return f"nothing is mounted at {path}"  # and the machine's own file system must not be thawed
    if not any(is_own(mount, path) for mount in mounts_at(path)):
        return f"no disk of the run's own is mounted at {path}"
    return f"thawed {path}" if thaw(path) else f"{path} was not frozen"


def allow_writing(step: UndoStep, context: UndoContext) -> str:
    """Restore a directory's mode, and let nothing in it be immutable. Arguments: path, as above, and mode."""
    path, mode = _own_path(step, context), step.arguments.get("mode")
    if not isinstance(mode, int):
        raise CannotUndo(f"step {step.id} does not give a mode: {step.arguments}")
    if not path.is_dir() or path.is_symlink():
        return f"{path} does not exist"
    opened = 0
    for directory in directories_in(path):  # directories that are too deep were not made immutable
        with contextlib.suppress(OSError):  # a file system that knows no such flag, or a directory that is just gone
            if is_immutable(directory):
                set_immutable(directory, False)
                opened += 1
    path.chmod(mode)
    return f"writing in {path} is allowed again" + (f", in {opened} directories" if opened else "")


def _own_path(step: UndoStep, context: UndoContext) -> Path:
    path = Path(str(step.arguments.get("path", "")))
    if not path.is_absolute():
        raise CannotUndo(f"step {step.id} does not give an absolute path: {step.arguments}")
    if ".." in path.parts or path.parent.resolve() != path.parent or not is_in_run(path, context):
        raise CannotUndo(f"{path} is in no directory of this run; it was left alone")
    return path


def unmount_topmost(path: Path) -> str:
    """Take away the topmost mount of a directory, and return the change in words. Raises OSError.

    The files on a file system of the harness's own are copied first, then moved to the directory under it. If the call
    is cut off, the next one does the rest: the file system is the truth as long as it is mounted, afterwards the copy
    is. A disk is the truth as long as its file is there, and is mounted anew for the copy: a fault may have broken it.
    """
    kept = path.with_name(f".{path.name}.kept")
    mounts = mounts_at(path)
    image = image_of(path)
    if image.is_file() and not image.is_symlink() and len(mounts) <= 1:
        return _take_disk_away(path, image, kept)
    last = len(mounts) <= 1  # files under another mount are not at hand yet; the next call puts them back
    if mounts and last and mounts[-1].source == SOURCE:
        _copy_afresh(path, kept)
    if mounts:
        unmount(path)
    moved = _move_back(kept, path) if last and kept.is_dir() else 0
    if not mounts and not moved:
        return f"nothing is mounted at {path}"
    return f"unmounted {path}" + (f", {moved} entries kept" if moved else "")


def _take_disk_away(path: Path, image: Path, kept: Path) -> str:
    while own_mounts := [mount for mount in mounts_at(path) if is_own(mount, path)]:
        thaw(path)
        with contextlib.suppress(OSError):  # a broken one has written out before it broke
            # A mount that others have copied into a namespace of theirs goes on after this one: the file alone would
            # then lack the last saves.
            flush(path)
        unmount(path)
        if len(own_mounts) == 1:
            break
    try:
        mount_image(image, path)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise CannotUndo(f"{image} cannot be mounted to keep what is on it: {error}") from error
        image.unlink()  # cut off while it was made: nothing was ever on it
        return f"removed {image}, on which nothing was"
    try:
        _copy_afresh(path, kept)
    finally:
        unmount(path)
    image.unlink()
    moved = _move_back(kept, path)
    return f"unmounted {path}" + (f", {moved} entries kept" if moved else "")


def is_in_run(path: Path, context: UndoContext) -> bool:
    """Return whether a path is in the directory of the run with this identity, and of no other with its files."""
    if context.directory is not None and not path.is_relative_to(context.directory):
        return False
    for parent in path.parents:
        with contextlib.suppress(RunDirectoryError):
            return bool(read_run(parent)["token"] == context.token)
    return False


def _copy_afresh(source: Path, kept: Path) -> None:
    """Copy a directory; ``kept`` is there only when the copy is whole."""
    unfinished = kept.with_name(f"{kept.name}.new")
    for stale in (unfinished, kept):
        if stale.is_dir():
            shutil.rmtree(stale)
    _copy(source, unfinished)
    unfinished.rename(kept)


def _copy(source: Path, target: Path) -> None:
    """Copy files and directories. Files that a running job removes meanwhile are left out.

    Raises OSError where not all of it can be copied, for the original goes away afterwards.
    """
    for path, directories, others in walk(source, raise_unseen):
        here, there = Path(path), target / Path(path).relative_to(source)
        there.mkdir()
        for name in (*others, *(name for name in directories if (here / name).is_symlink())):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy2(here / name, there / name, follow_symlinks=False)


def _move_back(kept: Path, path: Path) -> int:
    entries = sorted(kept.iterdir())
    for entry in entries:
        target = path / entry.name
        if _is_directory(entry) and _is_directory(target):  # the job has made it again
            _move_back(entry, target)
            continue
        os.rename(entry, target)  # noqa: PTH104 - as a pair with the system call: atomic, never a copy
    kept.rmdir()
    return len(entries)


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
