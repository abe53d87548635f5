"""``connection-reset``: resets TCP connections of one port between the targets' nodes and the others.

Both ends get an error (ECONNABORTED, ECONNRESET) at once, and may connect again; packets on their way are lost. The
port may be at either end: at node 0 all nodes' connections to the controller are reset, elsewhere the node's own. Use
``link`` for a communicator.

On Ascend: a firewall that forgets its connections, as after a failover.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chaos.base.strict_json import parse
from chaos.faults.kind import FaultKind, FaultMissed, Victim
from chaos.faults.network.named_port import port_of
from chaos.faults.network.on_network import FROM_START, SURFACE, missed, node_network, own_and_others
from chaos.faults.network.plan_ports import RESET_PORT
from chaos.faults.network.running_connections import RunningConnections
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job, PlatformError
from chaos.machine.linux.net.connections import Connection
from chaos.plan.job_effect import NONE

_DIRECTORY = "connections"


class ConnectionReset(FaultKind):
    """Resets connections."""

    name = "connection-reset"
    effect = NONE
    surface = SURFACE
    needs_from_start = FROM_START
    needs = ("connection-reset",)
    parameters = MappingProxyType({"port": RESET_PORT})

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Return no step: a connection that was reset is gone."""
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        """Ask the kernel to reset each connection of the rank's node.

        A second victim on that node changes nothing more.
        """
        node, there = own_and_others(job, victim)
        record = _record(victim, node)
        if record.exists():
            return
        port, network = port_of(victim), node_network(job)
        try:
            addresses = {network.address(other) for other in there}
            node_connections = network.established(node, of_run=True)
            matching = [
                connection
                for connection in node_connections
                if connection.target in addresses and _is_at(connection, port)
            ]
            ends = [connection for other in there for connection in network.established(other, of_run=False)]
            resets = [
                {
                    **asdict(connection),
                    "other cookie": next((end.cookie for end in ends if end.is_other_end(connection)), None),
                    "confirmed": network.reset(node, connection),
                }
                for connection in matching
            ]
        except (PlatformError, OSError) as error:
            raise missed(error) from error
        if not resets:
            raise FaultMissed(f"node {node} has no connection of port {port} with nodes {there} that could be reset")
        record.parent.mkdir(exist_ok=True)
        record.write_text(json.dumps(resets), "utf-8")

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the connections, which the kernel has reset at both ends.

        Raises FaultMissed if the record lacks them.
        """
        node, there = own_and_others(job, victim)
        try:
            resets = parse(_record(victim, node).read_text("utf-8"))
            network = node_network(job)
            # The cookie is of one kernel, and nodes may have one each: the node whose kernel knows it has that end.
            open_connections = {
                (connection.source, connection.cookie)
                for which in (node, *there)
                for connection in network.established(which, of_run=False)
            }
        except (PlatformError, OSError) as error:
            raise missed(error) from error
        assert isinstance(resets, list)
        left = sum(bool(_ends(connection) & open_connections) for connection in resets)
        return {"signal": None, "port": port_of(victim), "reset": resets, "left": left} if left == 0 else None

    def in_running_job(self) -> FaultKind:
        """Return the kind for the connections of a rank that runs already."""
        return RunningConnections(self.name, self.effect, self.needs)


def _ends(connection: Mapping[str, Any]) -> set[tuple[str, int]]:
    return {(connection["source"], connection["cookie"]), (connection["target"], connection["other cookie"])}


def _is_at(connection: Connection, port: int) -> bool:
    return port in (connection.source_port, connection.target_port)


def _record(victim: Victim, node: int) -> Path:
    """Return the file that keeps the reset connections: a second reset would hit the connections made since."""
    return victim.record.parent.parent / _DIRECTORY / f"{victim.fault}-node_{node}.json"


KIND = ConnectionReset()
