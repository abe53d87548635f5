"""``network-rate``: the way to the nodes of the ranks that are hit carries only so much a second.

The router between the nodes sends at that rate (tc-tbf(8)); what comes faster waits in it for up to a second, and what
does not find room there is lost and sent again.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from chaos.faults.condition import LASTS
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.on_network import OnNetwork, missed, router_of
from chaos.plan.parameters import Parameter
from chaos.platforms.base import Job, PlatformError

_BITS = 1000


class NetworkRate(OnNetwork):
    """Makes the network slow. On Ascend: a port that has fallen back to a lower rate, or a network full of others."""

    name = "network-rate"
    seen_at_once = False  # nothing is sent to a rank that is held, and by all others waiting for it
    needs = ("tbf",)
    parameters = MappingProxyType(
        {"kbit": Parameter("kilobits a second", least=8, most=100_000_000, whole=True, required=True), **LASTS}
    )

    def inject(self, job: Job, victim: Victim) -> None:
        """Limit what the router sends to the rank's node."""
        router, node = router_of(job), victim.identity.node
        assert node is not None
        try:
            if router.limited(victim.fault, node) is None:
                rate = f"{victim.parameters['kbit']}kbit"
                router.limit(victim.fault, node, "tbf", "rate", rate, "burst", "16kb", "latency", "1s")
        except PlatformError as error:
            raise missed(error) from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """The rate that the kernel holds to, and how many bytes it has sent by it. Raises FaultMissed on an end."""
        if job.state(victim.identity) in ("gone", "zombie"):
            raise FaultMissed(f"rank {victim.rank} has ended before anything was sent to it")
        return self.still(job, victim)

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """The same, whatever the rank does."""
        assert victim.identity.node is not None
        try:
            shown = router_of(job).limited(victim.fault, victim.identity.node)
        except PlatformError as error:
            raise missed(error) from error
        options = shown.get("options") if shown is not None else None
        if shown is None or not isinstance(options, dict) or not shown.get("bytes"):
            return None
        return {
            "signal": None,
            "kbit": options["rate"] * 8 // _BITS,
            "bytes": shown["bytes"],
            "overlimits": shown["overlimits"],
        }

    def ended(self, job: Job, victim: Victim) -> bool:
        """Whether the kernel sends to the node without this limit."""
        assert victim.identity.node is not None
        return router_of(job).limited(victim.fault, victim.identity.node) is None


KIND = NetworkRate()
