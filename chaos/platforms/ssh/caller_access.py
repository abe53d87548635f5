"""Hosts of a foreign undo step, reached by the caller's own inventory and never by the step's values."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.ssh.inventory import Host, read_inventory
from chaos.scenario.errors import ScenarioError


def with_callers_inventory(arguments: Mapping[str, Any], inventory: Path | None) -> Mapping[str, Any]:
    """Return the arguments with the user, key, program and directory of the caller's inventory for the same hosts.

    Raises PlatformError.
    """
    if inventory is None:
        raise PlatformError("it acts on hosts by SSH: name the inventory that has them, --inventory FILE")
    try:
        hosts_of_caller = read_inventory(inventory, user=getpass.getuser(), python=sys.executable)
    except ScenarioError as error:
        raise PlatformError(str(error)) from error
    named = arguments.get("hosts")
    hosts = [_same(description, hosts_of_caller, inventory) for description in named] if isinstance(named, list) else []
    if not hosts:
        raise PlatformError("it does not say which hosts it means")
    return {**arguments, "hosts": [host.as_json() for host in hosts]}


def _same(named: Any, hosts_of_caller: tuple[Host, ...], inventory: Path) -> Host:
    identity = [named.get(key) for key in ("name", "address", "port")] if isinstance(named, Mapping) else []
    for host in hosts_of_caller:
        if identity == [host.name, host.address, host.port]:
            return host
    description = " ".join(map(str, identity)) or "of no name"
    raise PlatformError(f"the host {description} is not in {inventory}: nothing was sent to it")
