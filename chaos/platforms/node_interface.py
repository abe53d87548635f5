"""The members that the nodes of a platform must have. Those of another package may be of an earlier release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from chaos.machine.job.protocol import PlatformError
from chaos.platforms.nodes import Node

MEMBERS = frozenset(name for name in vars(Node) if not name.startswith("_"))
"""Members that every node must have."""

RETIRED: Mapping[str, str] = {"helper": "hand", "node_network": "between"}
"""The earlier names of some of them."""


def check_nodes(nodes: Iterable[Node]) -> None:
    """Raise PlatformError for nodes that lack a member: it names the members and the remedy."""
    for node in nodes:
        has = frozenset(dir(node))
        lacking = [
            f"{name} (formerly {RETIRED[name]})" if RETIRED.get(name) in has else name for name in sorted(MEMBERS - has)
        ]
        if lacking:
            raise PlatformError(
                f"its nodes ({type(node).__qualname__}) lack {', '.join(lacking)}: the package that brings the "
                "platform is made for another release of chaos; add what is missing (chaos/platforms/nodes.py), or "
                "install a later release of the package"
            )
