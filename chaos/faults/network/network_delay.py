"""``network-delay``: delays the packets sent to the targets' nodes.

The kernel's netem (tc-netem(8)) does this, else a relay of the run's own; the plan says which. On hosts it is netem:
without it the run is refused. With a jitter netem lets packets overtake each other, the relay does not. Packets from
the nodes themselves are not delayed.

On Ascend: a switch with full queues, or traffic on another way.
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
            "milliseconds": Parameter("how long each packet waits, in ms", least=1, most=1000, required=True),
            "jitter": Parameter("how much more or less, in ms; none waits less than not at all", most=1000, default=0),
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
