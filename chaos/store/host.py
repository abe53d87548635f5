"""Which host made a run: its processes, mounts and cards are there, and here others may have their numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from chaos.base.clock import boot_id

HOST = "host"
"""Key of run.json."""


def this_host() -> dict[str, str]:
    """What tells this host and its boot from others, for a reports directory that several of them share."""
    return {"name": os.uname().nodename, "boot": boot_id()}


def other_host(described: Mapping[str, Any], here: Mapping[str, str]) -> str | None:
    """Return the name of the host that made a run, if it is another one than ``here``.

    A container has a name of its own and its host's boot; a host that was rebooted has its name and another boot.
    """
    match described.get(HOST):
        case {"name": str(name), "boot": str(boot)} if name != here["name"] and boot != here["boot"]:
            return name
        case _:
            return None
