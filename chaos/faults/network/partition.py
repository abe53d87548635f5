"""``partition``: drops all traffic between the targets' nodes and every other node.

No connection is closed. Afterwards TCP sends the packets again. With ``direction: out`` only packets from the targets'
nodes are lost.

Up to 2 seconds go unnoticed. After at most 18 s (timings ``fast``; 55 with the vendor's) the SDK's
controller gives the targets' ranks up; the others save the end-of-life checkpoint and exit. So a long partition must
cut whole nodes from the controller's, both ways, with TTP on. Ranks that are cut off live on: with ``seconds``
they must end by themselves when the network returns, else with the launch.

On Ascend: a switch or port that drops everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.network.on_network import OnNetwork, missed, node_network, sides
from chaos.faults.network.plan_partition import PARTITION, UNNOTICED
from chaos.machine.job.protocol import Job, PlatformError
from chaos.machine.linux.process import has_ended
from chaos.plan.job_effect import SUSPENSION
from chaos.plan.rules.parameters import Parameter, value_of
from chaos.platforms.network.links import Direction


class Partition(OnNetwork):
    """Parts the network."""

    name = PARTITION
    effect = SUSPENSION
    parameters = MappingProxyType(
        {
            "seconds": Parameter(
                f"up to {UNNOTICED:g} seconds, or from 18 (fast) or 55 (vendor); else to the launch's end",
                least=0.1,
                most=600,
            ),
            "direction": Parameter(
                "what is lost; of a longer one only both is planned", words=("both", "out", "in"), default="both"
            ),
        }
    )

    def inject(self, job: Job, victim: Victim) -> None:
        """Let the kernel drop the packets. A second victim of the same fault changes nothing more."""
        network = node_network(job)
        try:
            network.cut(victim.fault, self._directions(victim, *sides(job, victim)))
        except PlatformError as error:
            raise missed(error) from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the packets that the kernel drops each way, the cut connections, and the unanswered echoes.

        Raises FaultMissed if nothing goes that way.
        """
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended")
        here, there = sides(job, victim)
        directions = list(self._directions(victim, here, there))
        try:
            parted = node_network(job).cut_effects(victim.fault, directions, here, there)
        except (PlatformError, OSError) as error:
            raise missed(error) from error
        if not parted.connections:
            raise FaultMissed(f"the node of rank {victim.rank} has no connection to nodes {there} that could be cut")
        if len(parted.lost) < len(directions) or parted.echoes.answer_count:
            return None
        echoes = {"sent": parted.echoes.sent, "answered": parted.echoes.answer_count}
        lost = [list(direction) for direction in parted.lost]
        return {
            "signal": None,
            "connections": parted.connections,
            "lost": lost,
            "ways": len(directions),
            "echoes": echoes,
        }

    def still(self, job: Job, victim: Victim) -> dict[str, Any]:
        """Return the ways for which the kernel still has the fault's rule.

        There is one look: each one makes the partition longer. The connections at this time are the job's affair.
        """
        directions = list(self._directions(victim, *sides(job, victim)))
        try:
            cuts = node_network(job).cuts(victim.fault)
        except (PlatformError, OSError) as error:
            raise missed(error) from error
        return {"lost": [list(direction) for direction in directions if direction in cuts], "ways": len(directions)}

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether no rule of this fault is left; another one may cut the same ways for longer."""
        return not node_network(job).cuts(victim.fault)

    def _directions(self, victim: Victim, here: list[int], there: list[int]) -> Iterator[Direction]:
        direction = value_of(victim.parameters, self.parameters, "direction")
        for node in here:
            for other in there:
                if direction in ("both", "out"):
                    yield node, other
                if direction in ("both", "in"):
                    yield other, node


KIND = Partition()
