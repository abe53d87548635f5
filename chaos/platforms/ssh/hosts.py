"""The hosts of a scenario's inventory, for callers that need neither user nor Python there."""

from __future__ import annotations

import os
from pathlib import Path

from chaos.platforms.ssh.inventory import Host, read_inventory
from chaos.scenario.models.scenario import Scenario
from chaos.scenario.models.ssh import Ssh


def path_of(settings: Ssh, directory: Path) -> Path:
    """Return the inventory's path; ``directory`` is the scenario's."""
    return directory / os.path.expanduser(settings.inventory)  # noqa: PTH111 - where there is no home, as it is


def hosts_in(scenario: Scenario, directory: Path) -> tuple[Host, ...]:
    """Return all hosts of the inventory. Raises ScenarioError where the inventory is invalid."""
    assert scenario.cluster.ssh is not None
    return read_inventory(path_of(scenario.cluster.ssh, directory), user="", python="")
