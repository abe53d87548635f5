"""Cards that the cluster has quarantined (ManuallySeparateNPU), as its ConfigMaps list them.

The device plugin keeps the names of a node's cards in ``mindx-dl-deviceinfo-<node>`` (namespace kube-system) under
ManuallySeparateNPU. ClusterD keeps the names of all nodes in ``clusterd-manual-info-cm`` (cluster-system), a JSON text
for each node with ``Total``. ManuallySeparateNPU is an empty text where no card is quarantined (administrators leave it
empty, too); without that key nothing is known. ClusterD's ConfigMap lists only nodes with isolated cards: a node that
is missing there has none. A quarantine outlives the fault: an administrator lifts it by hand, or it expires after a
configured time. Source: MindCluster, configuring fault detection levels; Ascend Device Plugin, ConfigMaps.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from chaos.base.strict_json import parse
from chaos.machine.ascend.unreadable import UnreadableOutput
from chaos.machine.linux.commands import CommandError, Commands

KEY = "ManuallySeparateNPU"
PLUGIN, MANUAL = "mindx-dl-deviceinfo-{node}", "clusterd-manual-info-cm"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}-\d{1,4}")
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_ABSENT = "NotFound"


@dataclass(frozen=True)
class Quarantine:
    """The quarantined cards of a node.

    ``known`` is False where no source could be read; ``how`` names the sources that were read, or the reason.
    """

    node: str
    known: bool
    cards: tuple[str, ...]
    how: str

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {**asdict(self), "cards": list(self.cards)}


def what_to_do(node: str) -> str:
    """Return the way to lift a quarantine, by the vendor's document."""
    return (
        f"when the card is sound, delete its name after {KEY}: kubectl edit cm -n kube-system "
        f"{PLUGIN.format(node=node)}, and from Total: kubectl edit cm -n cluster-system {MANUAL}"
    )


def node_name(environment: Mapping[str, str]) -> str:
    """Return this machine's name in the cluster: NODE_NAME where it is set, else the host's."""
    return environment.get("NODE_NAME") or socket.gethostname().lower()


def quarantined(node: str, commands: Commands) -> Quarantine:
    """Ask the cluster for a node's quarantined cards. Raises nothing."""
    if not _NODE.fullmatch(node):
        return Quarantine(
            node,
            False,
            (),
            f"{node!r} is no name of a node (NODE_NAME, or the inventory's)",
        )
    cards: set[str] = set()
    sources = []
    for namespace, name, read in (
        ("kube-system", PLUGIN.format(node=node), read_plugin),
        ("cluster-system", MANUAL, read_manual),
    ):
        try:
            done = commands("kubectl", "get", "configmap", "-n", namespace, name, "-o", "json")
            if done.code != 0 and _ABSENT in done.errors and name == MANUAL:
                continue  # only newer clusters have this ConfigMap
            cards |= set(read(done.checked(), node))
        except (CommandError, UnreadableOutput) as error:
            return Quarantine(node, False, (), str(error))
        sources.append(f"{namespace}/{name}")
    return Quarantine(node, True, tuple(sorted(cards)), ", ".join(sources))


def read_plugin(text: str, node: str) -> tuple[str, ...]:
    """Return the names in the device plugin's ConfigMap, printed as JSON. Raises UnreadableOutput."""
    del node
    data = _data(text)
    if KEY not in data:
        raise UnreadableOutput(f"kubectl get configmap {PLUGIN}", f"it has no key {KEY}, which is empty for none", text)
    if not isinstance(listed := data[KEY], str):
        raise UnreadableOutput(KEY, "not a text of names", repr(listed))
    return _names([name.strip() for name in listed.split(",") if name.strip()])


def read_manual(text: str, node: str) -> tuple[str, ...]:
    """Return a node's names in ClusterD's ConfigMap, printed as JSON. Raises UnreadableOutput."""
    entry = _data(text).get(node)
    if entry is None:
        return ()
    try:
        total = parse(entry if isinstance(entry, str) else "null")
    except ValueError as error:
        raise UnreadableOutput(MANUAL, f"the entry of {node} is not JSON", str(entry)) from error
    listed = total.get("Total") if isinstance(total, dict) else None
    if not isinstance(listed, list):
        raise UnreadableOutput(MANUAL, f"the entry of {node} has no list Total", str(entry))
    return _names(listed)


def _data(text: str) -> dict[str, Any]:
    try:
        document = parse(text)
    except ValueError as error:
        raise UnreadableOutput("kubectl get configmap", "not JSON", text) from error
    data = document.get("data", {}) if isinstance(document, dict) and document.get("kind") == "ConfigMap" else None
    if not isinstance(data, dict):
        raise UnreadableOutput("kubectl get configmap", "not a ConfigMap", text)
    return data


def _names(listed: list[Any]) -> tuple[str, ...]:
    for name in listed:
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise UnreadableOutput(KEY, "not the name of a card", repr(name))
    return tuple(listed)
