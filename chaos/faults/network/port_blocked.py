"""``port-blocked``: drops the packets to one TCP port of the targets' nodes; all other traffic passes.

No connection is closed. Afterwards TCP sends the packets again.

On Ascend: a firewall that drops packets to controller, scheduler or HCCL's host sockets.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.network.named_port import port_of
from chaos.faults.network.on_network import BRIEFLY, OnNetwork, missed, node_network, own_and_others
from chaos.faults.network.plan_ports import PORT
from chaos.machine.job.protocol import Job, PlatformError
from chaos.machine.linux.net.ports import Ports
from chaos.machine.linux.process import has_ended
from chaos.plan.rules.parameters import Parameter, value_of
from chaos.platforms.network.links import Direction


class PortBlocked(OnNetwork):
    """Blocks a port."""

    name = "port-blocked"
    parameters = MappingProxyType(
        {
            "port": PORT,
            **BRIEFLY,
            "direction": Parameter(
                "packets to the port, or also those from it",
                words=("in", "both"),
                default="in",
            ),
        }
    )

    def inject(self, job: Job, victim: Victim) -> None:
        """Let the kernel drop the packets. A second victim with the same port changes nothing more."""
        network = node_network(job)
        try:
            network.block(victim.fault, list(self._blocked_packets(job, victim)))
        except PlatformError as error:
            raise missed(error) from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return unanswered packets to the port, and answered ones to another.

        Raises FaultMissed if no connection exists.
        """
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended")
        (node, there), port = own_and_others(job, victim), port_of(victim)
        flows = list(self._blocked_packets(job, victim))
        try:
            blocked = node_network(job).blocked(victim.fault, port, flows, node)
        except (PlatformError, OSError) as error:
            raise missed(error) from error
        if not blocked.connections:
            raise FaultMissed(f"nodes {there} have no connection with port {port} of node {node} that could be cut")
        if not len(blocked.lost) == len(blocked.passing) == len(flows):
            return None
        if blocked.attempts != (len(there), 0) or blocked.elsewhere != (len(there), len(there)):
            return None
        return {
            "signal": None,
            **_shown(port, blocked.lost, len(flows)),
            "connections": blocked.connections,
            "passing": [list(direction) for direction in blocked.passing],
            "attempts": _numbers(blocked.attempts),
            "attempts elsewhere": _numbers(blocked.elsewhere),
        }

    def still(self, job: Job, victim: Victim) -> dict[str, Any]:
        """Return the ways on which the kernel still drops packets to the port.

        There is one look: each one makes the fault last longer. The connections at this time are the job's affair.
        """
        flows = list(self._blocked_packets(job, victim))
        try:
            return _shown(port_of(victim), node_network(job).lost(victim.fault, flows), len(flows))
        except (PlatformError, OSError) as error:
            raise missed(error) from error

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether no rule of this fault is left."""
        return not node_network(job).cuts(victim.fault)

    def _blocked_packets(self, job: Job, victim: Victim) -> Iterator[tuple[Direction, Ports]]:
        """Yield the packets that are to vanish: their ways, each with the ports."""
        (node, there), port = own_and_others(job, victim), port_of(victim)
        yield from (((other, node), Ports(target=port)) for other in there)
        if value_of(victim.parameters, self.parameters, "direction") == "both":
            yield from (((node, other), Ports(source=port)) for other in there)


def _shown(port: int, lost: list[Direction], directions: int) -> dict[str, Any]:
    return {"port": port, "lost": [list(direction) for direction in lost], "ways": directions}


def _numbers(attempts: tuple[int, int]) -> dict[str, int]:
    return dict(zip(("made", "answered"), attempts, strict=True))


KIND = PortBlocked()
