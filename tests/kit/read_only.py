"""A directory in which nothing can be written, also where the tests are root's: root gives up what ignores modes."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_VERSION_3 = 0x20080522
_IGNORES_MODES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""

_LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def read_only(directory: Path) -> Iterator[None]:
    """Make a directory and its files read-only for this thread, and put their modes back in the end."""
    paths = [directory, *directory.iterdir()]
    modes = {path: path.stat().st_mode & 0o7777 for path in paths}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    before = _capabilities()
    _set(before[0] & ~_IGNORES_MODES, *before[1:])
    try:
        yield
    finally:
        _set(*before)
        for path, mode in modes.items():
            if path.exists():
                path.chmod(mode)


def _capabilities() -> tuple[int, ...]:
    """Return the lower halves of the effective, permitted and inheritable set, then the upper halves."""
    data = (ctypes.c_uint32 * 6)()
    _checked(_LIBC.capget((ctypes.c_uint32 * 2)(_VERSION_3, 0), data))
    return tuple(data)


def _set(*sets: int) -> None:
    _checked(_LIBC.capset((ctypes.c_uint32 * 2)(_VERSION_3, 0), (ctypes.c_uint32 * 6)(*sets)))


def _checked(returned: int) -> None:
    if returned:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
