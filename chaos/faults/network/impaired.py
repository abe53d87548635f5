"""The common part of faults that impair the way to a node: by netem where the kernel has it, else by a relay.

On hosts the packet filter drops packets, and netem delays them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.network.on_network import OnNetwork, missed, node_network, sides
from chaos.machine.job.protocol import Job, PlatformError
from chaos.machine.linux.net.echo import Echoes
from chaos.machine.linux.process import has_ended
from chaos.platforms.network.impairment import Impairment


class Impaired(OnNetwork):
    """The common part of all such kinds."""

    needs = ("impairment",)
    chosen_by = "impairment"

    @abstractmethod
    def impairment(self, victim: Victim) -> Impairment:
        """Return the impairment of the packets."""

    @abstractmethod
    def measured(self, victim: Victim, echoes: Echoes) -> dict[str, Any] | None:
        """Return the effect in the echoes; None where they do not show it."""

    #: How the echoes are sent: how many, and seconds between two.
    count, interval = 5, 0.02

    def inject(self, job: Job, victim: Victim) -> None:
        """Impair the packets to the rank's node. A second victim there changes nothing more."""
        network, node = node_network(job), victim.identity.node
        assert node is not None
        try:
            if network.impaired(victim.fault, node) is None:
                network.impair(victim.fault, node, self.impairment(victim))
        except PlatformError as error:
            raise missed(error) from error

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the round trips of echoes to the other nodes, and the count of packets.

        Raises FaultMissed on an end.
        """
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended before anything was sent to it")
        node = victim.identity.node
        assert node is not None
        _, there = sides(job, victim)
        what = self.impairment(victim)
        wait = 1.0 + (what.delay + what.jitter) / 1000
        try:
            network = node_network(job)
            echoes = network.echo(node, there[:1], count=self.count, interval=self.interval, wait=wait)
            shown = network.impaired(victim.fault, node)
        except (PlatformError, OSError) as error:
            raise missed(error) from error
        measured = self.measured(victim, echoes)
        if shown is None or measured is None or not shown["passed"]:
            return None
        return {"signal": None, **shown, **measured}

    def still(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the impairment of the way to the node, and the count of packets by now."""
        assert victim.identity.node is not None
        shown = node_network(job).impaired(victim.fault, victim.identity.node)
        return None if shown is None else {"signal": None, **shown}

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether packets to the node pass as before."""
        assert victim.identity.node is not None
        return node_network(job).impaired(victim.fault, victim.identity.node) is None
