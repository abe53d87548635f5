"""Faults of whole nodes."""

from __future__ import annotations

from chaos.faults.family import Family, Kind, Undo
from chaos.plan.effect import Effect

FAMILY = Family(
    kinds={
        "dns-gone": Kind("chaos.faults.nodes.dns_gone:KIND", "chaos.faults.nodes.proof:DNS"),
        "node-cpu-quota": Kind(
            "chaos.faults.nodes.node_cpu_quota:KIND", "chaos.faults.nodes.proof:CPU_QUOTA", Effect(starves=True)
        ),
        "node-disconnect": Kind(
            "chaos.faults.nodes.node_disconnect:KIND",
            "chaos.faults.nodes.proof:DISCONNECT",
            Effect(silenced="chaos.faults.nodes.proof:is_disconnected", cut_off=True),
        ),
        "node-kill": Kind("chaos.faults.nodes.node_kill:KIND", "chaos.faults.nodes.proof:KILL", Effect(signal=9)),
        "node-oom": Kind("chaos.faults.nodes.node_oom:KIND", "chaos.faults.nodes.proof:OOM", Effect(signal=9)),
        "node-pause": Kind(
            "chaos.faults.nodes.node_pause:KIND",
            "chaos.faults.nodes.proof:PAUSE",
            Effect(silenced="chaos.faults.nodes.proof:is_paused"),
        ),
        "node-reboot": Kind(
            "chaos.faults.nodes.node_reboot:KIND", "chaos.faults.nodes.proof:REBOOT", Effect(fails=True, reboots=True)
        ),
        "node-restart": Kind(
            "chaos.faults.nodes.node_restart:KIND", "chaos.faults.nodes.proof:RESTART", Effect(signal=9)
        ),
        "node-stop": Kind(
            "chaos.faults.nodes.node_stop:KIND", "chaos.faults.nodes.proof:STOP", Effect(signal=9, grace=2.0)
        ),
        "node-volume-gone": Kind("chaos.faults.nodes.node_volume_gone:KIND", "chaos.faults.nodes.proof:VOLUME_GONE"),
    },
    undo={
        "restore-node": Undo("chaos.faults.nodes.undo:restore_node"),
    },
)
