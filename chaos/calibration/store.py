"""The scenario file that a calibration changes, and the text before it, kept beside the file for ``--undo``."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from chaos.base.refusal import Refused

_MOST = 8 << 20


def kept_beside(scenario: Path) -> Path:
    """Return the file that keeps the text before the last calibration."""
    return scenario.with_name(f".{scenario.name}.before-calibrate")


def read(scenario: Path) -> str:
    """Return the text of a scenario. Raises Refused for what is no file that could be written again."""
    if not scenario.is_file():
        raise Refused(f"{scenario}: is no file that could be written; use --dry-run")
    return scenario.read_bytes().decode("utf-8")


def write(scenario: Path, before: str, after: str) -> None:
    """Write the new text; the text before is on disk first.

    Raises Refused where the file has changed since ``before`` was read.
    """
    if read(scenario) != before:
        raise Refused(f"{scenario} has changed while the runs were made; nothing was written")
    _replace(kept_beside(scenario), json.dumps({"after": _digest(after), "before": before}), 0o600)
    _replace(scenario, after, scenario.stat().st_mode & 0o777)


def undo(scenario: Path) -> None:
    """Write the text before the last calibration again.

    Raises Refused where there is none, or where somebody has changed the file since.
    """
    kept = kept_beside(scenario)
    try:
        if kept.is_symlink() or kept.stat().st_size > _MOST:
            raise ValueError
        content = json.loads(kept.read_text("utf-8"))
        before, after = content["before"], content["after"]
        if not (isinstance(before, str) and isinstance(after, str)):
            raise ValueError
    except FileNotFoundError:
        raise Refused(f"{scenario}: there is no calibration to undo") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise Refused(f"{kept} is not what a calibration has kept; nothing was changed") from None
    if _digest(read(scenario)) != after:
        raise Refused(f"{scenario} has changed since the calibration; the text before it is in {kept}")
    _replace(scenario, before, scenario.stat().st_mode & 0o777)
    kept.unlink()


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _replace(path: Path, text: str, mode: int) -> None:
    """Write a file so that a reader sees the old text or the new one. A link stays a link."""
    path = Path(os.path.realpath(path))
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        unfinished.chmod(mode)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
