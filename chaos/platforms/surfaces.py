"""The objects that a fault kind may act on (:class:`chaos.faults.kind.FaultKind`) and a platform carry, in words."""

from __future__ import annotations

from collections.abc import Mapping

SURFACES: Mapping[str, str] = {
    "agent": "a rank through the agent in it",
    "process": "a process by a signal",
    "files": "files of the job",
    "mounts": "mounts of the job's directory",
    "node": "a whole node",
    "names": "the resolvers of a node's names",
    "resources": "what the host gives a process",
    "network": "the network between nodes",
    "device": "an Ascend device by the vendor's tools",
    "host": "a machine's boot",
    "pod": "a pod",
    "cluster": "objects of a Kubernetes cluster",
    "mesh": "pods, by Chaos Mesh",
}
"""The objects that fault kinds act on, in words."""

CLUSTER = "cluster"
NAMES = "names"
NETWORK = "network"

WHOLE_NODES = frozenset({"node", NAMES, "host", "pod", "mesh"})
"""The objects that only faults on whole nodes act on."""

ON_THIS_HOST = frozenset(SURFACES) - {"node", NAMES, "pod", CLUSTER, "mesh"}
"""The default of a platform's ``carries``: it starts jobs on this host, not on a node that faults could act on."""
