"""Faults of whole nodes."""

from __future__ import annotations

from chaos.evidence.refusal import refused
from chaos.faults.family import Family, Kind
from chaos.faults.nodes import proof

FAMILY = Family(
    kinds={
        "dns-gone": Kind("chaos.faults.nodes.dns_gone:KIND", proof.DNS),
        "node-cpu-quota": Kind("chaos.faults.nodes.node_cpu_quota:KIND", proof.CPU_QUOTA),
        "node-disconnect": Kind("chaos.faults.nodes.node_disconnect:KIND", proof.DISCONNECT),
        "node-kill": Kind("chaos.faults.nodes.node_kill:KIND", proof.KILL),
        "node-oom": Kind("chaos.faults.nodes.node_oom:KIND", proof.OOM),
        "node-pause": Kind("chaos.faults.nodes.node_pause:KIND", proof.PAUSE),
        "node-reboot": Kind("chaos.faults.nodes.node_reboot:KIND", proof.REBOOT),
        "node-restart": Kind("chaos.faults.nodes.node_restart:KIND", proof.RESTART),
        "node-stop": Kind("chaos.faults.nodes.node_stop:KIND", proof.STOP),
        "node-volume-gone": Kind("chaos.faults.nodes.node_volume_gone:KIND", refused("ENOENT")),
    },
)
