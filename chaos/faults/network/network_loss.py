"""``network-loss``: drops a share of the packets sent to the targets' nodes; TCP sends them again.

The kernel's netem drops them, else a relay of the run; on hosts their packet filter. The plan says which.

On Ascend: a bad cable, or a congested switch.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from chaos.faults.condition import LASTS
from chaos.faults.kind import Victim
from chaos.faults.network.impaired import Impaired
from chaos.machine.linux.net.echo import Echoes
from chaos.plan.rules.parameters import Parameter
from chaos.platforms.network.impairment import Impairment


class NetworkLoss(Impaired):
    """Lets packets be lost."""

    name = "network-loss"
    parameters = MappingProxyType(
        {
            "percent": Parameter(
                "percentage of packets; with more MindIO TFT may take ranks for lost",
                least=0.5,
                most=10,
                required=True,
            ),
            **LASTS,
        }
    )
    count, interval = 200, 0.002

    def impairment(self, victim: Victim) -> Impairment:
        """Return the scenario's loss."""
        return Impairment(loss=float(victim.parameters["percent"]))

    def measured(self, victim: Victim, echoes: Echoes) -> dict[str, Any] | None:
        """Return the number of lost echoes; None where none was lost, or all were."""
        lost = echoes.sent - echoes.answer_count
        return {"sent": echoes.sent, "lost": lost} if lost and echoes.answer_count else None


KIND = NetworkLoss()
