"""Taking names from a node of the job, which most platforms do not support: the reason, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.platforms.kind import Unsupported
from chaos.platforms.surfaces import NAMES

_INSTEAD = (
    "use it with platform: docker and no fault of the network beside it, on kubernetes pod-dns-gone; that scheduler or "
    "controller are not reached is port-blocked, that a node is not reached partition"
)


def without_names(reason: str) -> Mapping[str, Unsupported]:
    """Return the reason of one platform, with what to use in its place."""
    return {NAMES: Unsupported(reason, _INSTEAD)}
