"""``network-rate``: limits the rate at which packets reach the targets' nodes.

Packets wait up to a second; then they are lost and sent again.

On Ascend: a port with a reduced rate.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from chaos.faults.condition import LASTS
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.network.on_network import OnNetwork, missed, node_network
from chaos.machine.job.protocol import Job, PlatformError
from chaos.machine.linux.process import has_ended
from chaos.plan.rules.parameters import Parameter


class NetworkRate(OnNetwork):
    """Makes the network slow."""

    name = "network-rate"
    shows_when_let_go = True  # nobody sends to a rank that is held, and all others wait for it
    needs = ("tbf",)
    parameters = MappingProxyType(
        {"kbit": Parameter("kilobits per second", least=8, most=100_000_000, whole=True, required=True), **LASTS}
    )

    def inject(self, job: Job, victim: Victim) -> None:
        """Limit the packets to the rank's node. A second victim there changes nothing more."""
        assert victim.identity.node is not None
        try:
            node_network(job).slow(victim.fault, victim.identity.node, int(victim.parameters["kbit"]))
        except PlatformError as error:
            raise missed(error) from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the kernel's rate, and the count of bytes that it has sent. Raises FaultMissed on an end."""
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended before anything was sent to it")
        return self.still(job, victim)

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the same, whatever the rank does."""
        assert victim.identity.node is not None
        try:
            shown = node_network(job).slowed(victim.fault, victim.identity.node)
        except PlatformError as error:
            raise missed(error) from error
        return {"signal": None, **shown} if shown is not None and shown["bytes"] else None

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether the kernel sends to the node without this limit."""
        assert victim.identity.node is not None
        return node_network(job).slowed(victim.fault, victim.identity.node) is None


KIND = NetworkRate()
