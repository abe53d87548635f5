"""Faults of the network between nodes."""

from __future__ import annotations

from chaos.faults.family import Family, Kind, Undo
from chaos.plan.effect import Effect
from chaos.plan.recovery.mechanism import SAVING

FAMILY = Family(
    kinds={
        "connection-reset": Kind(
            "chaos.faults.network.connection_reset:KIND",
            "chaos.faults.network.proof:RESET",
            Effect(resets_connections=True),
            job={"protection": SAVING, "timings": "vendor"},
        ),
        "network-delay": Kind(
            "chaos.faults.network.network_delay:KIND", "chaos.faults.network.proof:DELAY", Effect(holds_packets=True)
        ),
        "network-loss": Kind("chaos.faults.network.network_loss:KIND", "chaos.faults.network.proof:LOSS"),
        "network-rate": Kind("chaos.faults.network.network_rate:KIND", "chaos.faults.network.proof:RATE"),
        "partition": Kind(
            "chaos.faults.network.partition:KIND",
            "chaos.faults.network.proof:PARTITION",
            Effect(parts_nodes=True),
            parameters={"seconds": 1},
        ),
        "port-blocked": Kind(
            "chaos.faults.network.port_blocked:KIND",
            "chaos.faults.network.proof:PORT",
            Effect(blocks_port=True),
            job={"protection": SAVING},
            target={"node": 0},
        ),
    },
    undo={
        "mend-network": Undo("chaos.faults.network.undo:mend_network"),
    },
    rules="chaos.faults.network.plan:RULES",
)
