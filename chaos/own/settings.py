"""The checks and hooks that a project always allows: ``chaos.toml``, or ``[tool.chaos]`` of ``pyproject.toml``."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.base.plain_files import read_plain
from chaos.base.refusal import Refused
from chaos.own.allowed import NOTHING, Allowed, allowed

FILE = "chaos.toml"
_PROJECT = "pyproject.toml"
_KEYS = ("allow-checks", "allow-hooks")


def allowed_by_settings(start: Path, scenario: Path) -> Allowed:
    """Return the allowance in the nearest settings from the working directory ``start`` upwards.

    It covers scenarios below the settings only, so a scenario from elsewhere gains nothing by a name that a project
    allows for its own. Raises Refused for settings that another user may have written, or that cannot be used.
    """
    for directory in (start, *start.parents):
        path, settings = _settings_in(directory)
        if path is not None:
            below = scenario.resolve().is_relative_to(directory.resolve())
            return _allowed(path, settings) if below else NOTHING
    return NOTHING


def _settings_in(directory: Path) -> tuple[Path | None, Mapping[str, Any]]:
    if (path := directory / FILE).is_file():
        return path, _read(path)
    if (path := directory / _PROJECT).is_file() and b"tool.chaos" in path.read_bytes():
        settings = _read(path).get("tool", {}).get("chaos")
        if isinstance(settings, dict):
            return path, settings
    return None, {}


def _read(path: Path) -> dict[str, Any]:
    if sys.version_info < (3, 11):
        raise Refused(f"{path}: Python 3.10 cannot read it; give --allow-checks and --allow-hook instead")
    import tomllib

    _refuse_others(path)
    try:
        return tomllib.loads(read_plain(path).decode("utf-8"))
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: cannot be used: {error}") from None


def _refuse_others(path: Path) -> None:
    """Refuse a file that others can write: it says which code runs as this user."""
    status = path.stat()
    if status.st_uid not in (os.geteuid(), 0) or status.st_mode & stat.S_IWOTH:
        raise Refused(f"{path}: another user may have written it, so it can allow nothing; it must be yours alone")


def _allowed(path: Path, settings: Mapping[str, Any]) -> Allowed:
    if unknown := [key for key in settings if key not in _KEYS]:
        raise Refused(f"{path}: there is no setting {unknown[0]!r}; there are {' and '.join(_KEYS)}")
    for key in _KEYS:
        names = settings.get(key, [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise Refused(f'{path}: {key} must be a list of texts, such as {key} = ["losses:falls"]')
    return allowed(settings.get("allow-checks", []), settings.get("allow-hooks", []))
