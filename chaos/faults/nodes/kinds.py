"""Faults of whole nodes."""

from __future__ import annotations

from chaos.evidence.injection.refusal import refused
from chaos.faults.family import Family, Kind, Undo
from chaos.faults.nodes import proof
from chaos.plan.effect import Effect

FAMILY = Family(
    kinds={
        "dns-gone": Kind("chaos.faults.nodes.dns_gone:KIND", proof.DNS),
        "node-cpu-quota": Kind("chaos.faults.nodes.node_cpu_quota:KIND", proof.CPU_QUOTA, Effect(starves=True)),
        "node-disconnect": Kind(
            "chaos.faults.nodes.node_disconnect:KIND",
            proof.DISCONNECT,
            Effect(silenced=proof.is_disconnected, cut_off=True),
        ),
        "node-kill": Kind("chaos.faults.nodes.node_kill:KIND", proof.KILL, Effect(signal=9)),
        "node-oom": Kind("chaos.faults.nodes.node_oom:KIND", proof.OOM, Effect(signal=9)),
        "node-pause": Kind("chaos.faults.nodes.node_pause:KIND", proof.PAUSE, Effect(silenced=proof.is_paused)),
        "node-reboot": Kind("chaos.faults.nodes.node_reboot:KIND", proof.REBOOT, Effect(fails=True, reboots=True)),
        "node-restart": Kind("chaos.faults.nodes.node_restart:KIND", proof.RESTART, Effect(signal=9)),
        "node-stop": Kind("chaos.faults.nodes.node_stop:KIND", proof.STOP, Effect(signal=9, grace=2.0)),
        "node-volume-gone": Kind("chaos.faults.nodes.node_volume_gone:KIND", refused("ENOENT")),
    },
    undo={
        "restore-node": Undo("chaos.faults.nodes.undo:restore_node"),
    },
)
