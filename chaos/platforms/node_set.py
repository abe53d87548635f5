"""The nodes of a run, for every platform: they are held by number, and released together."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Generic, TypeVar

from chaos.platforms.nodes import Node, Site

N = TypeVar("N", bound=Node)
H = TypeVar("H")


class NodeSet(Generic[N]):
    """The nodes of one run, each with a helper. Leaving the context closes the helpers; undo steps remove the nodes."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._nodes: dict[int, N] = {}

    def all(self) -> Sequence[N]:
        """Return all nodes as they are, in order."""
        return [self._nodes[number] for number in sorted(self._nodes)]

    def close(self) -> None:
        """Close the remote helpers."""
        for node in self._nodes.values():
            node.helper.close()

    def __enter__(self: H) -> H:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
