"""A directory that the kernel does not let a user look into, also where the tests are root's."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest


def refuse(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Refuse every look at a file in ``directory``, as a mode of 0700 of another user does."""
    below = f"{directory}/"

    def refusing(name: str) -> None:
        real = getattr(os, name)

        def call(path: Any, *more: Any, **named: Any) -> Any:
            if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(below):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
            return real(path, *more, **named)

        monkeypatch.setattr(os, name, call)

    for name in ("stat", "lstat", "open"):
        refusing(name)
