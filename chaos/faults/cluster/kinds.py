"""Faults of a cluster's objects."""

from __future__ import annotations

from chaos.faults.family import Family, Kind, Undo
from chaos.plan.effect import Effect

FAMILY = Family(
    kinds={
        "node-cordon": Kind("chaos.faults.cluster.node_cordon:KIND", "chaos.faults.cluster.proof:CORDON"),
        "node-drain": Kind(
            "chaos.faults.cluster.node_drain:KIND", "chaos.faults.cluster.proof:DRAIN", Effect(signal=9, takes_pod=True)
        ),
        "node-not-ready": Kind("chaos.faults.cluster.node_not_ready:KIND", "chaos.faults.cluster.proof:NOT_READY"),
        "pod-delete": Kind(
            "chaos.faults.cluster.pod_delete:KIND",
            "chaos.faults.cluster.proof:POD_ENDED",
            Effect(signal=9, takes_pod=True),
        ),
        "pod-dns-gone": Kind("chaos.faults.cluster.pod_dns_gone:KIND", "chaos.faults.cluster.proof:MESH"),
        "pod-evict": Kind(
            "chaos.faults.cluster.pod_evict:KIND",
            "chaos.faults.cluster.proof:POD_ENDED",
            Effect(signal=9, takes_pod=True),
        ),
        "pod-io-delay": Kind("chaos.faults.cluster.pod_io_delay:KIND", "chaos.faults.cluster.proof:MESH"),
        "pod-network-delay": Kind("chaos.faults.cluster.pod_network_delay:KIND", "chaos.faults.cluster.proof:MESH"),
        "pod-network-loss": Kind("chaos.faults.cluster.pod_network_loss:KIND", "chaos.faults.cluster.proof:MESH"),
        "pod-network-partition": Kind(
            "chaos.faults.cluster.pod_network_partition:KIND", "chaos.faults.cluster.proof:MESH"
        ),
        "public-fault": Kind("chaos.faults.cluster.public_fault:KIND", "chaos.faults.cluster.proof:PUBLIC_FAULT"),
    },
    undo={
        "release-cluster-node": Undo("chaos.faults.cluster.undo:release_node"),
        "recover-public-fault": Undo("chaos.faults.cluster.undo:recover_public_fault"),
        "delete-mesh-object": Undo("chaos.faults.cluster.undo:delete_mesh_object"),
    },
)
