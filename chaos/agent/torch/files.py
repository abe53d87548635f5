"""The checkpoints of PyTorch: files, directories that are one checkpoint, and the names that a job gives to them later.

:func:`hook_torch_files` binds ``torch.save`` and ``torch.load`` to it, :mod:`chaos.agent.torch.dcp` the directories.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import get_ident
from types import ModuleType
from typing import Any, Callable

from chaos.agent.torch.saves.in_memory import MemorySaves, Moment
from chaos.agent.torch.saves.opened import OpenedFiles
from chaos.agent.training import Training

_PATHS = (str, bytes, os.PathLike)

_STEP_KEYS = ("step", "steps", "global_step", "iteration", "iter")
"""Keys under which scripts keep the number of trained steps beside the states of model and optimizer."""


class Files:
    """The checkpoints of one process: each path that was saved, until a directory or file gets another name."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self._saved: set[str] = set()
        self._reading: set[str] = set()
        self._directories: set[str] = set()
        self._background: dict[str, int] = {}
        self._in_memory = MemorySaves()
        self._opened = OpenedFiles()

    def save(self, state: Any, file: Any, write: Callable[[], Any]) -> Any:
        """Write a checkpoint. A buffer in memory has no name yet; a part of a directory is no checkpoint of its own.

        A thread beside the loop may write a ``state`` that was taken in an earlier step.
        """
        training, path = self._training, path_of(file)
        if path is not None and not self._is_part(path):
            late = training.is_elsewhere()
            return self._save(path, write, training.step_of_state(state) if late else None, late=late)
        result = write()
        if path is None and not self._directories and not self._background:
            self._opened.watch()
            training.before_step = self.settle
            self._in_memory.note(file, Moment(training.steps_begun, training.step_of_state(state)))
        return result

    def _save(self, path: str, write: Callable[[], Any], step: int | None, *, late: bool) -> Any:
        training = self._training
        with training.saving_later(path, step) if late else training.saving(path, end_of_life=False):
            result = write()
        self._saved.add(os.path.abspath(path))
        return result

    def _save_from_memory(self, source: str, target: str, write: Callable[[], Any]) -> Callable[[], Any]:
        """Return ``write`` as a save, where it names a file that holds what was saved in memory before."""
        noted = self._in_memory.take(source)
        if noted is None or self._is_part(target):
            return write
        late = self._training.is_elsewhere() or noted.begun != self._training.steps_begun
        return lambda: self._save(target, write, noted.step, late=late)

    def settle(self) -> None:
        """Record the files that have got the bytes of a save in memory under their last names, before the next step.

        They are whole by now: a save within their writing cannot be hit, so there is no barrier.
        """
        for path in self._opened.take():
            noted = self._in_memory.take(path)
            if noted is not None and not self._is_part(path):
                self._save(path, lambda: None, noted.step, late=True)

    def load(self, file: Any, read: Callable[[], Any]) -> Any:
        """Read a checkpoint. What has no name is not recorded; a part of a directory is none of its own."""
        path = path_of(file)
        if path is not None:
            return read() if self._is_part(path) else self._read(path, read)
        result = read()
        if not self._directories:
            self._training.loaded_unnamed(step_of(result))
        return result

    def _read(self, path: str, read: Callable[[], Any]) -> Any:
        """Read a file; a read within that of the same file is a part of it."""
        name = os.path.abspath(path)
        if name in self._reading:
            return read()
        self._reading.add(name)
        try:
            return self._training.load(path, read, step_of)
        finally:
            self._reading.discard(name)

    def save_directory(self, directory: str, write: Callable[[], Any]) -> Any:
        """Write this rank's part of a directory that is one checkpoint, or the part of a save in the background."""
        directory = os.path.abspath(directory)
        if directory in self._background:
            with self._training.writing(directory):
                return write()
        with self._training.saving(directory, end_of_life=False), self._parts_of(directory):
            result = write()
        self._saved.add(directory)
        return result

    def save_directory_later(self, directory: str, begin: Callable[[], Any]) -> Any:
        """Begin to write a directory in the background. ``begin`` returns a future, or an object with a future."""
        directory = os.path.abspath(directory)
        self._background[directory] = get_ident()
        try:
            with self._training.saving(directory, end_of_life=False, asynchronous=True):
                response = begin()
        except BaseException:
            self._background.pop(directory, None)
            raise
        self._saved.add(directory)
        getattr(response, "upload_completion", response).add_done_callback(functools.partial(self._written, directory))
        return response

    def load_directory(self, directory: str, state: Any, read: Callable[[], Any]) -> Any:
        """Read a directory that is one checkpoint into ``state``."""
        result = None

        def read_into() -> Any:
            nonlocal result
            result = read()
            return state

        with self._parts_of(os.path.abspath(directory)):
            self._training.load(directory, read_into, step_of)
        return result

    def wrote(self) -> None:
        """Note that a part of a file has been written, by a thread that is in a step: none in the background is."""
        callers = list(self._background.values())
        if get_ident() in callers or not (callers or self._training.is_elsewhere()):
            self._training.wrote()

    def copy(self, source: Any, target: Any, write: Callable[[], Any]) -> Any:
        """Copy a file, or give it a second name. The copy of a checkpoint is one, too."""
        path, to = os.path.abspath(os.fsdecode(source)), os.path.abspath(os.fsdecode(target))
        write = self._save_from_memory(path, to, write)
        if path not in self._saved or path == to:
            return write()
        with self._training.copying(path, to):
            result = write()
        self._saved.add(to)
        return result

    @contextmanager
    def _parts_of(self, directory: str) -> Iterator[None]:
        self._directories.add(directory)
        try:
            yield
        finally:
            self._directories.discard(directory)

    def _is_part(self, path: str) -> bool:
        above = os.path.dirname(os.path.abspath(path))
        return above in self._directories or above in self._background

    def _written(self, directory: str, future: Any) -> None:
        """Note how a save in the background ended; another process may have written it, whose end says nothing here."""
        with suppress(Exception), self._training.writing(directory):
            self._background.pop(directory, None)
            future.result()

    def rename(self, old: Any, new: Any, rename: Callable[[], Any]) -> Any:
        """Give a file another name. The file of a checkpoint that was saved in memory is saved with it."""
        result = self._save_from_memory(os.fsdecode(old), os.path.abspath(os.fsdecode(new)), rename)()
        self.renamed(old, new)
        return result

    def renamed(self, old: Any, new: Any) -> None:
        """Note the new name of a saved file, or of a directory of saved files: a save ends with its last name."""
        source, target = os.path.abspath(os.fsdecode(old)), os.path.abspath(os.fsdecode(new))
        for path in sorted(self._saved):
            if path == source or path.startswith(source + os.sep):
                self._saved.discard(path)
                self._saved.add(target + path[len(source) :])
                self._training.renamed(path, target + path[len(source) :])


def path_of(file: Any) -> str | None:
    """Return the path of a file that is given by its path, or that is open; None for anything else."""
    name = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
    if type(name) is int:  # a file that was opened by its descriptor, as tempfile.mkstemp returns one
        link = f"/proc/self/fd/{name}"
        name = os.readlink(link) if os.path.isfile(link) else None
        name = name if name and os.path.isfile(name) else None  # none that has been removed
    return os.fsdecode(name) if isinstance(name, _PATHS) and os.fsdecode(name) else None


def hook_torch_files(files: Files, module: ModuleType) -> None:
    """Record every file that is saved and loaded through ``torch.save`` and ``torch.load``."""
    save, load = module.save, module.load

    @functools.wraps(save)
    def save_with_agent(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        return files.save(obj, f, lambda: save(obj, f, *args, **kwargs))

    @functools.wraps(load)
    def load_with_agent(f: Any, *args: Any, **kwargs: Any) -> Any:
        return files.load(f, lambda: load(f, *args, **kwargs))

    module.save, module.load = save_with_agent, load_with_agent  # type: ignore[attr-defined]
    if hasattr(module, "_save"):
        module._save = _noting_records(files, module._save)  # type: ignore[attr-defined]


def _noting_records(files: Files, write: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that writes a file's members, with the barrier in the middle of a file behind each."""

    @functools.wraps(write)
    def write_with_agent(obj: Any, zip_file: Any, *args: Any, **kwargs: Any) -> Any:
        return write(obj, _Members(zip_file, files), *args, **kwargs)

    return write_with_agent


class _Members:
    """PyTorch's writer of a file, seen member by member."""

    def __init__(self, writer: Any, files: Files) -> None:
        self._writer = writer
        self._files = files

    def write_record(self, *args: Any) -> Any:
        result = self._writer.write_record(*args)
        self._files.wrote()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)


def hook_names(files: Files) -> None:
    """See the renaming of files by ``os.rename`` and ``os.replace``, through which ``pathlib`` and ``shutil`` go.

    See also their copies, by ``shutil`` and by ``os.link``.
    """
    for name in ("rename", "replace"):
        setattr(os, name, _noting_name(files, getattr(os, name)))
    os.link = _noting_copy(files, os.link)
    shutil.copyfile = _noting_copy(files, shutil.copyfile)  # copy, copy2, copytree and move call it


def _noting_name(files: Files, rename: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(rename)
    def rename_with_agent(src: Any, dst: Any, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs or not isinstance(src, _PATHS):
            return rename(src, dst, *args, **kwargs)
        return files.rename(src, dst, lambda: rename(src, dst))

    return rename_with_agent


def _noting_copy(files: Files, copy: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(copy)
    def copy_with_agent(src: Any, dst: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.keys() & {"src_dir_fd", "dst_dir_fd"} or not all(isinstance(path, _PATHS) for path in (src, dst)):
            return copy(src, dst, *args, **kwargs)
        return files.copy(src, dst, lambda: copy(src, dst, *args, **kwargs))

    return copy_with_agent


def step_of(loaded: Any) -> int | None:
    """Return the number of trained steps that a checkpoint says; None where it has no such key."""
    if not isinstance(loaded, Mapping):
        return None
    return next((loaded[key] for key in _STEP_KEYS if type(loaded.get(key)) is int), None)
