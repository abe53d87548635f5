"""What a fault kind may act on (:class:`chaos.faults.kind.FaultKind`), and a platform carry: the words for it."""

from __future__ import annotations

from collections.abc import Mapping

MEANS: Mapping[str, str] = {
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
"""What a fault kind acts on, in words."""

CLUSTER = "cluster"
NAMES = "names"
NETWORK = "network"

WHOLE_NODES = frozenset({"node", NAMES, "host", "pod", "mesh"})
"""What only a fault that hits whole nodes acts on."""

ON_THIS_HOST = frozenset(MEANS) - {"node", NAMES, "pod", CLUSTER, "mesh"}
"""What a platform carries that says nothing: it starts jobs on this host, which is no node that could be acted on."""
