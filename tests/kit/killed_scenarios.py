"""Which scenarios' harnesses are killed, how often, and which kinds of undo each is there for.

Together they need every undo action that there is (tests/unit/heal/test_every_undo_is_killed.py), but for those that
``ELSEWHERE`` names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from chaos.run.prepare.prepare import known_names
from chaos.scenario.load import Cell, load_scenario
from tests.kit.shipped import shipped

ALWAYS = frozenset({"end-job", "remove-directory"})
"""Undo actions that every run needs."""


@dataclass(frozen=True)
class Killed:
    """A cell whose harness is killed ``times`` times. ``undo`` are the undo actions that it needs beside ``ALWAYS``."""

    scenario: str
    times: int
    undo: frozenset[str] = frozenset()
    cell: str = ""

    @property
    def path(self) -> Path:
        """Its scenario."""
        return shipped(self.scenario)

    @property
    def name(self) -> str:
        """For a test."""
        return f"{self.scenario}[{self.cell}]" if self.cell else self.scenario

    def load(self) -> Cell:
        """The cell."""
        (found,) = [cell for cell in load_scenario(self.path, names=known_names()).cells if cell.name == self.cell]
        return found


_MOUNT, _NETWORK = frozenset({"unmount-storage"}), frozenset({"mend-network", "end-nodes"})
_NODE = frozenset({"restore-node", "end-nodes"})
_REFUSED = "plain-storage-refused"

KILLED = (
    # With MindSpore: signals, suspensions, mounts.
    Killed("kill-rank", 8),
    Killed("suspend-rank", 8, frozenset({"resume-process"})),
    Killed("disk-full", 8, _MOUNT),
    Killed("read-only", 8, _MOUNT),
    Killed("distributed-recovery", 8, frozenset({"note-kept"})),
    # Plain ranks: the same, and limits of what the host gives, files that are damaged, rules of the network.
    Killed("plain-kill-rank", 12),
    Killed("plain-suspend-rank", 8, frozenset({"resume-process"}), "agent=false"),
    Killed("plain-tsp", 12, frozenset({"continue-training"})),
    Killed("plain-host-load", 24, frozenset({"switch-off", "restore-limit", "leave-group"})),
    Killed("plain-oom", 12, frozenset({"remove-memory-group"})),
    Killed(_REFUSED, 8, _MOUNT, "fault=io-error"),
    Killed(_REFUSED, 8, _MOUNT, "fault=storage-gone"),
    Killed(_REFUSED, 8, frozenset({"allow-writing"}), "fault=no-permission"),
    Killed("plain-storage-stall", 12, _MOUNT | {"thaw-storage"}),
    Killed("plain-slow-storage", 8, _MOUNT | {"switch-off"}),
    Killed("plain-damaged-checkpoint", 12, frozenset({"restore-checkpoint"}), "damage=truncate-checkpoint"),
    Killed("pause", 8, frozenset({"resume-process"})),
    Killed("partition", 12, _NETWORK, "direction=both"),
    Killed("plain-network-rate", 8, _NETWORK),
    Killed("plain-network-delay", 8, _NETWORK),
)
"""200 kills on one machine."""

IN_CONTAINERS = (
    Killed("plain-node-quota", 8, _NODE),
    Killed("plain-node-faults", 8, _NODE, "kind=node-oom"),
    Killed("plain-node-faults", 8, _NODE, "kind=node-pause"),
    Killed("plain-node-faults", 8, _NODE, "kind=node-disconnect"),
    Killed("plain-node-volume", 8, _NODE),
)
"""More where there is a Docker engine: quotas and limits of whole nodes, and what was taken from them."""

_CLUSTER = "tests/cluster kills the harness on a cluster of its own"
_CARD = "it resets a real card, or takes its link down: for a person who watches (docs/guides/on-the-device.md)"
_INJECTED = "chaos inject makes it, of which there is no soak"
ELSEWHERE = {
    "release-cluster-node": _CLUSTER,
    "recover-public-fault": _CLUSTER,
    "delete-mesh-object": _CLUSTER,
    "recover-link": _CARD,
    "see-chip": _CARD,
    "resume-adopted": f"{_INJECTED}; tests/rehearsal/own_jobs/test_running_jobs.py kills it",
    "restore-checkpoint-adopted": f"{_INJECTED}; tests/unit/cli/inject/test_inject_checkpoints.py kills it",
    "restore-limit-adopted": f"{_INJECTED}; tests/unit/cli/inject/test_inject_conditions.py kills it",
}
"""Undo actions that are killed in no soak, and why."""
