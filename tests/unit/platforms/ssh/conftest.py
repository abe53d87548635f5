"""Real sshds on loopback ports."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from dataclasses import replace

import pytest

from chaos.platforms.ssh.inventory import Host, read_inventory
from tests.kit.hosts.ssh_hosts import loopback_hosts


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, ...]]:
    with loopback_hosts(tmp_path_factory.mktemp("sshd") / "hosts", ("first", "second")) as made:
        yield read_inventory(made.inventory, user="", python="/usr/bin/python3")


@pytest.fixture
def host(hosts: tuple[Host, ...]) -> Host:
    return replace(hosts[0], user=getpass.getuser())
