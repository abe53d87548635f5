"""Files and directories of this machine that a scenario names: they must exist before anything is started."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path


def file_problem(path: Path) -> str | None:
    """Return why a file cannot be read, in words; None if it can. A link counts as its target."""
    return _problem(path, "there is no such file", stat.S_ISREG, "is a directory, and no file", os.R_OK)


def directory_problem(path: Path) -> str | None:
    """Return why a directory cannot be read, in words; None if it can."""
    return _problem(path, "there is no such directory", stat.S_ISDIR, "is a file, and no directory", os.R_OK | os.X_OK)


def _problem(path: Path, missing: str, is_right_kind: Callable[[int], bool], other: str, access: int) -> str | None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return missing
    except (OSError, ValueError) as error:
        return f"cannot be looked at: {getattr(error, 'strerror', None) or error}"
    if not is_right_kind(mode):
        return other if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else "is neither a plain file nor a directory"
    return None if os.access(path, access) else "cannot be read by this user"
