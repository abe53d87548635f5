"""The owner of a kubeconfig: a file that the caller names may run a program for its credentials, no other file may."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.base.plain_files import read_plain
from chaos.machine.job.protocol import PlatformError

_PROGRAMS = ("exec", "auth-provider")
"""Keys of a user's entry by which the client runs a program, by a path of the entry's choice."""

_MAX_BYTES = 1 << 20


def refuse_programs(path: Path) -> None:
    """Raise PlatformError for a kubeconfig that runs a program, unless the caller's environment names it."""
    if any(_is_same(path, kubeconfig) for kubeconfig in own_kubeconfigs()):
        return
    for name, key in _programs_in(path):
        raise PlatformError(
            f"kubeconfig {path} would run a program ({key!r} of user {name!r}), and only the undo ledger names it: "
            f"nothing was run. If it is yours, name it yourself: KUBECONFIG={path} chaos heal"
        )


def own_kubeconfigs() -> list[Path]:
    """Return the files that the caller's environment names, as kubectl takes them."""
    named = [Path(path) for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    return named or [Path("~/.kube/config").expanduser()]


def _programs_in(path: Path) -> list[tuple[str, str]]:
    """Return the users of a kubeconfig with the key by which each runs a program. Raises PlatformError."""
    import yaml

    try:
        content = yaml.safe_load(read_plain(path, _MAX_BYTES))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise PlatformError(f"kubeconfig {path} cannot be read: {type(error).__name__}") from error
    users: Any = content.get("users") if isinstance(content, Mapping) else None
    programs = []
    for entry in users if isinstance(users, list) else ():
        user = entry.get("user") if isinstance(entry, Mapping) else None
        programs += [(str(entry.get("name")), key) for key in _PROGRAMS if isinstance(user, Mapping) and key in user]
    return programs


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):
        return False
