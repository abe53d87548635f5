"""``partition``: what goes between the nodes of the ranks that are hit and all other nodes vanishes.

The router between the nodes drops the packets; nobody is told, and no connection is closed. Afterwards TCP sends what
was lost again. ``direction`` is ``both``, ``out`` (only what the nodes that are hit send is lost) or ``in``.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.on_network import OnNetwork, connections, missed, namespace_of, router_of, sides
from chaos.plan.parameters import Parameter, value_of
from chaos.platforms.base import Job, PlatformError
from chaos.platforms.network.echo import ask
from chaos.platforms.network.router import Router, address_of

_ECHOES = 2
_ECHO_SECONDS = 0.05
"""Requests to each node, and how long their answers may take: through one kernel it is well below a millisecond."""


class Partition(OnNetwork):
    """Parts the network. On Ascend: a switch or a host's port that drops everything for a moment."""

    name = "partition"
    parameters = MappingProxyType(
        {
            "seconds": Parameter(
                "how long, in seconds; longer, and MindIO TFT takes ranks for lost whose heartbeat it misses, which is "
                "not planned by this version",
                least=0.1,
                most=2,
                required=True,
            ),
            "direction": Parameter("what is lost", words=("both", "out", "in"), default="both"),
        }
    )

    def inject(self, job: Job, victim: Victim) -> None:
        """Let the router drop it. A second victim of the same fault changes nothing more."""
        router = router_of(job)
        try:
            router.cut(victim.fault, self._ways(job, victim))
        except PlatformError as error:
            raise missed(error) from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """What the kernel does with a packet each way, how many connections of the rank's nodes it cuts, and that no
        echo comes back: of a request and its answer one goes the way that is cut.

        Raises FaultMissed if the rank has ended, or where nothing goes that way.
        """
        if job.state(victim.identity) in ("gone", "zombie"):
            raise FaultMissed(f"rank {victim.rank} has ended")
        here, there = sides(job, victim)
        namespaces = [namespace_of(job, node) for node in here]
        addresses = {address_of(node) for node in there}
        cut = sum(connections(one, addresses) for one in namespaces)
        if not cut:
            raise FaultMissed(f"the node of rank {victim.rank} has no connection to nodes {there} that could be cut")
        shown: dict[str, Any] = {"signal": None, "connections": cut}
        try:
            ways, router = list(self._ways(job, victim)), router_of(job)
            shown["lost"] = [list(way) for way in self._ruled(router, victim, ways) if router.is_cut(*way)]
            shown["ways"] = len(ways)
            echoes = [ask(one, addresses, count=_ECHOES, wait=_ECHO_SECONDS) for one in namespaces]
        except (PlatformError, OSError) as error:
            raise missed(error) from error
        shown["echoes"] = {"sent": sum(one.sent for one in echoes), "answered": sum(one.answered for one in echoes)}
        return shown if len(shown["lost"]) == shown["ways"] and shown["echoes"]["answered"] == 0 else None

    def still(self, job: Job, victim: Victim) -> dict[str, Any]:
        """The ways of which the kernel still has the fault's rule. One look: each one makes the partition longer.

        Which connections there are by then is the job's affair.
        """
        ways = list(self._ways(job, victim))
        try:
            ruled = self._ruled(router_of(job), victim, ways)
        except (PlatformError, OSError) as error:
            raise missed(error) from error
        return {"lost": [list(way) for way in ruled], "ways": len(ways)}

    def _ruled(self, router: Router, victim: Victim, ways: list[tuple[int, int]]) -> list[tuple[int, int]]:
        own = router.cuts(victim.fault)
        return [way for way in ways if way in own]

    def ended(self, job: Job, victim: Victim) -> bool:
        """Whether no rule of this fault is left; another one may cut the same ways for longer."""
        return not router_of(job).cuts(victim.fault)

    def _ways(self, job: Job, victim: Victim) -> Iterator[tuple[int, int]]:
        direction = value_of(victim.parameters, self.parameters, "direction")
        here, there = sides(job, victim)
        for one in here:
            for other in there:
                if direction in ("both", "out"):
                    yield one, other
                if direction in ("both", "in"):
                    yield other, one


KIND = Partition()
