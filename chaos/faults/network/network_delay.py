"""``network-delay``: delays the packets sent to the targets' nodes; their own packets are not delayed.

The kernel's netem does this, else a relay of the run; the plan says which. Hosts need netem. With a jitter netem
reorders packets, the relay does not.

On Ascend: a switch with full queues.
"""

from __future__ import annotations

from statistics import median
from types import MappingProxyType
from typing import Any

from chaos.faults.condition import LASTS
from chaos.faults.kind import Victim
from chaos.faults.network.impaired import Impaired
from chaos.machine.linux.net.echo import Echoes
from chaos.plan.rules.parameters import Parameter
from chaos.platforms.network.impairment import Impairment


class NetworkDelay(Impaired):
    """Makes the way to a node long."""

    name = "network-delay"
    parameters = MappingProxyType(
        {
            "milliseconds": Parameter("delay of each packet, in ms", least=1, most=1000, required=True),
            "jitter": Parameter("how much more or less, in ms", most=1000, default=0),
            **LASTS,
        }
    )

    def impairment(self, victim: Victim) -> Impairment:
        """Return the scenario's delay; a packet due before its arrival is sent at once."""
        return Impairment(
            delay=float(victim.parameters["milliseconds"]), jitter=float(victim.parameters.get("jitter", 0))
        )

    def measured(self, victim: Victim, echoes: Echoes) -> dict[str, Any] | None:
        """Return the median of the round trips, which takes the delay once; None while none was so long."""
        impairment = self.impairment(victim)
        if not echoes.milliseconds or median(echoes.milliseconds) < max(0.0, impairment.delay - impairment.jitter):
            return None
        return {"round_trip": round(median(echoes.milliseconds), 3), "echoes": echoes.answer_count}


KIND = NetworkDelay()
