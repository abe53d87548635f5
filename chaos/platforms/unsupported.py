"""Why most platforms have no names that a fault could take from a node of the job."""

from __future__ import annotations

from collections.abc import Mapping

from chaos.platforms.kind import WhyNot
from chaos.platforms.means import NAMES

_INSTEAD = (
    "use it with platform: docker and no fault of the network beside it, on kubernetes pod-dns-gone; that scheduler or "
    "controller are not reached is port-blocked, that a node is not reached partition"
)


def no_names(reason: str) -> Mapping[str, WhyNot]:
    """The reason of one platform, with what to use in its place."""
    return {NAMES: WhyNot(reason, _INSTEAD)}
