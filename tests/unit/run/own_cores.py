"""Leases of a test's own cores, so that it waits for nobody's job; ports are leased where all others lease theirs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from chaos.machine.leases import PORTS, Lease, Leases


class OwnCores(Leases):
    """Cores from a directory of the test. Ports of its own would be those of another test's job at the same time."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._of_all = Leases()

    def take_ports(self, count: int, *, run: str = "", ports: Iterable[int] = PORTS) -> Lease:
        return self._of_all.take_ports(count, run=run, ports=ports)
