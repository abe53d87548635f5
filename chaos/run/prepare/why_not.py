"""Why a platform cannot carry a fault kind, where its name alone does not tell, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping

_ON_THIS_HOST = (
    "there a job is told addresses throughout, and its nodes have no resolver of their own that could be lost: those "
    "of local-networks are in network namespaces without a way to any, all others share this host's, which is never "
    "changed"
)

_NO_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("local", "local-nodes", "local-networks"), _ON_THIS_HOST),
    "docker-networks": "a container there has no network of the engine's, and so nothing that resolves names",
    **dict.fromkeys(
        ("ssh", "ssh-networks"), "the resolvers of a host are those of all that runs on it, not of the job alone"
    ),
    "kubernetes": "in a cluster Chaos Mesh takes names from one pod",
}
"""By platform: why it has no names that could be taken from a node of the job."""

_INSTEAD = (
    "use it with platform: docker and no fault of the network beside it, on kubernetes pod-dns-gone; that scheduler or "
    "controller are not reached is port-blocked, that a node is not reached partition"
)


def why_not(means: str, platform: str) -> tuple[str, str] | None:
    """The reason, and what to do, for a platform that cannot carry what acts on ``means``; None where nothing more is
    to be said than that."""
    if means != "names" or platform not in _NO_NAMES:
        return None
    return _NO_NAMES[platform], _INSTEAD
