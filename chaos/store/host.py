"""The host that made a run: its processes, mounts and cards are there, and here others may have their numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from chaos.base.clock import boot_id

HOST = "host"
"""Key of run.json."""


def this_host() -> dict[str, str]:
    """Return what identifies this host and its boot, for a reports directory that several hosts share."""
    return {"name": os.uname().nodename, "boot": boot_id()}


def other_host(described: Mapping[str, Any], here: Mapping[str, str]) -> str | None:
    """Return the name of the host that made a run, unless it is the host ``here``.

    A container has a name of its own and its host's boot; a rebooted host keeps its name and has another boot.
    """
    match described.get(HOST):
        case {"name": str(name), "boot": str(boot)} if name != here["name"] and boot != here["boot"]:
            return name
        case _:
            return None
