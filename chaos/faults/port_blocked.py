"""``port-blocked``: what goes to one TCP port of the nodes of the ranks that are hit vanishes; all else passes.

The router between the nodes drops these packets; nobody is told, and no connection is closed. Afterwards TCP sends what
was lost again. With ``direction: both`` what comes back from that port vanishes too. So one service of the job can be
cut off while the others go on: the heartbeats while the collectives pass, or the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.named_port import port_of
from chaos.faults.on_network import BRIEFLY, OnNetwork, missed, own_and_others, router_of
from chaos.plan.parameters import Parameter, value_of
from chaos.plan.ports import PORT
from chaos.platforms.base import Job, PlatformError
from chaos.platforms.network.attempts import answered
from chaos.platforms.network.between import Way
from chaos.platforms.network.connected import connections
from chaos.platforms.network.router import address_of
from chaos.platforms.network.rules import Ports

_SILENCE_SECONDS = 0.05
"""How long an answer from the port may take: through one kernel it is well below a millisecond."""
_ANSWER_SECONDS = 1.0
_DISCARD, _ECHO = 9, 7
"""Ports that nobody of a job listens on (RFC 863, RFC 862): one of them is asked whether other ports answer."""


class PortBlocked(OnNetwork):
    """Blocks a port. On Ascend: a firewall or a security group that drops what goes to the port of the controller, of
    the scheduler, or of HCCL's sockets on the host (from HCCL_IF_BASE_PORT on), for a moment."""

    name = "port-blocked"
    parameters = MappingProxyType(
        {
            "port": PORT,
            **BRIEFLY,
            "direction": Parameter(
                "what is lost: what is sent to the port, or also what comes back from it",
                words=("in", "both"),
                default="in",
            ),
        }
    )

    def inject(self, job: Job, victim: Victim) -> None:
        """Let the router drop it. A second victim with the same port changes nothing more."""
        router, (node, there) = router_of(job), own_and_others(job, victim)
        try:
            for ports, ways in self._meant(victim, node, port_of(victim), there):
                router.cut(victim.fault, ways, ports)
        except PlatformError as error:
            raise missed(error) from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """What the kernel does with a packet to the port and with any other, how many connections to the port it cuts,
        and that the port does not answer to the other nodes while another port does.

        Raises FaultMissed if the rank has ended, or where nobody is connected with the port.
        """
        if job.state(victim.identity) in ("gone", "zombie"):
            raise FaultMissed(f"rank {victim.rank} has ended")
        (node, there), port = own_and_others(job, victim), port_of(victim)
        namespace = router_of(job).namespace(node)
        cut = connections(namespace.holder.pid, {address_of(other) for other in there}, port)
        if not cut:
            raise FaultMissed(f"nodes {there} have no connection with port {port} of node {node} that could be cut")
        try:
            shown = self._lost(job, victim, node, port, there)
            shown |= {"signal": None, "connections": cut, "passing": self._passing(job, victim, node, port, there)}
            other = _ECHO if port == _DISCARD else _DISCARD
            ends = ((port, _SILENCE_SECONDS), (other, _ANSWER_SECONDS))
            heard = [self._answers(job, there, (address_of(node), at), seconds) for at, seconds in ends]
        except (PlatformError, OSError) as error:
            raise missed(error) from error
        shown["attempts"], shown["attempts elsewhere"] = ({"made": len(there), "answered": told} for told in heard)
        all_ways = len(shown["lost"]) == len(shown["passing"]) == shown["ways"]
        return shown if all_ways and heard == [0, len(there)] else None

    def still(self, job: Job, victim: Victim) -> dict[str, Any]:
        """The ways on which the kernel still lets what goes to the port vanish. One look: each makes it last longer.

        Which connections there are by then is the job's affair.
        """
        node, there = own_and_others(job, victim)
        try:
            return self._lost(job, victim, node, port_of(victim), there)
        except (PlatformError, OSError) as error:
            raise missed(error) from error

    def ended(self, job: Job, victim: Victim) -> bool:
        """Whether no rule of this fault is left."""
        return not router_of(job).cuts(victim.fault)

    def _meant(self, victim: Victim, node: int, port: int, there: list[int]) -> Iterator[tuple[Ports, list[Way]]]:
        """The packets that are to vanish: their ports, and the ways on which they go."""
        yield Ports(target=port), [(other, node) for other in there]
        if value_of(victim.parameters, self.parameters, "direction") == "both":
            yield Ports(source=port), [(node, other) for other in there]

    def _lost(self, job: Job, victim: Victim, node: int, port: int, there: list[int]) -> dict[str, Any]:
        """On which of the ways the kernel has this fault's rule, and lets such a packet vanish."""
        router, lost, all_ways = router_of(job), [], 0
        for ports, ways in self._meant(victim, node, port, there):
            ruled = router.cuts(victim.fault, ports)
            lost += [list(way) for way in ways if way in ruled and router.is_cut(*way, ports)]
            all_ways += len(ways)
        return {"port": port, "lost": lost, "ways": all_ways}

    def _passing(self, job: Job, victim: Victim, node: int, port: int, there: list[int]) -> list[list[int]]:
        """Those of the ways on which other packets pass."""
        ways = [way for _, some in self._meant(victim, node, port, there) for way in some]
        return [list(way) for way in ways if not router_of(job).is_cut(*way)]

    def _answers(self, job: Job, there: list[int], end: tuple[str, int], seconds: float) -> int:
        return sum(len(answered(router_of(job).namespace(one), [end], wait=seconds)) for one in there)


KIND = PortBlocked()
