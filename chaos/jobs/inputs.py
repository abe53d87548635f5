"""The part of a job's input files in its baseline's key.

Sources are few and small, and are read whole. Data and weights may be terabytes: only their size and time count.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from chaos.base.walking import walk

BY_SIZE_AND_TIME = "seen "
"""Prefix of the entries for files by size and time only. A job may write to such a file itself."""

MOST_FILES = 20_000
"""Most files of a directory that count, in the order of their names."""

_ENDINGS = ("", ".bin", ".idx")
"""An indexed data set is named by the common part of its two files' names (Megatron's form, also ``data_path``)."""

_NOT_SOURCES = frozenset({"node_modules", "site-packages"})


def sources_digest(root: Path, more: Iterable[Path] = ()) -> str:
    """Return a digest of every Python file below a directory, and of ``more`` files in it that exist."""
    digest = hashlib.sha256()
    for file in (*sorted(more), *python_files(root)):
        try:
            content = file.read_bytes()
        except OSError:
            continue
        digest.update(os.fsencode(file.relative_to(root)) + b"\0%d\0" % len(content) + content)
    return digest.hexdigest()


def named_inputs(words: Iterable[str], beside: Path | None = None) -> dict[str, str]:
    """Return an entry for each file or directory that these words name; other words have none.

    ``--option=path`` names one too. ``beside`` is the directory of relative paths; without it they name nothing, since
    a job runs in a new directory.
    """
    entries: dict[str, str] = {}
    for word in words:
        for text in {word, word.partition("=")[2]}:
            named = _named(text, beside)
            for path in () if named is None else (Path(f"{named}{ending}") for ending in _ENDINGS):
                if (state := _state(path)) is not None:
                    entries[f"{BY_SIZE_AND_TIME}{path}"] = state
    return entries


def module_inputs(search_path: str) -> dict[str, str]:
    """Return an entry for each directory of a PYTHONPATH: size and time of its Python files."""
    entries = {}
    for name in search_path.split(os.pathsep):
        # A relative one begins in the job's own directory, which is new.
        if name.startswith("/") and (root := Path(name)).is_dir():
            entries[f"{BY_SIZE_AND_TIME}modules below {root}"] = _listing(python_files(root))
    return entries


def words_of(data: Any) -> Iterator[str]:
    """Yield every text in plain data."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from words_of(value)
    elif isinstance(data, (list, tuple)):
        for value in data:
            yield from words_of(value)


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return names of the entries in which two fingerprints differ."""
    return tuple(sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)))


def _named(text: str, beside: Path | None) -> Path | None:
    if not text or text.isspace() or "\0" in text or len(text) > 4096:
        return None
    path = Path(text)
    if path.is_absolute():
        return path
    return None if beside is None else beside / path


def _state(path: Path) -> str | None:
    """Return size and time of a file, or of all files of a directory; None if neither exists."""
    try:
        if path.is_dir():
            return _listing(_files(path))
        return _size_and_time(path) if path.is_file() else None
    except OSError:
        return None


def _listing(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for number, file in enumerate(files):
        if number == MOST_FILES:
            break
        try:
            digest.update(os.fsencode(file) + f"\0{_size_and_time(file)}\0".encode())
        except OSError:
            continue
    return digest.hexdigest()


def _size_and_time(file: Path) -> str:
    status = file.stat()
    return f"{status.st_size} bytes, {status.st_mtime_ns} ns"


def python_files(root: Path) -> Iterator[Path]:
    """Yield the Python files below a directory, as :func:`sources_digest` reads them."""
    return (file for file in _files(root, _NOT_SOURCES) if file.suffix == ".py")


def _files(root: Path, left_out: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Yield the files below a directory in a fixed order; hidden directories and other environments are not entered.

    Files deeper than a walk goes are left out, like those over MOST_FILES.
    """
    for directory, below, names in walk(root):
        if "pyvenv.cfg" in names and directory != str(root):
            below.clear()
            continue
        below[:] = sorted(name for name in below if not name.startswith((".", "__pycache__")) and name not in left_out)
        yield from (Path(directory, name) for name in sorted(names))
