"""Places of a scenario's values in its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from chaos.scenario.yaml_nodes import Mapping, Node, Scalar, Sequence

Path: TypeAlias = "tuple[str | int, ...]"
"""Keys and list positions from the root down to a value."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node found by its path, with the position of its key (or its own, in a list)."""

    line: int
    column: int
    node: Node
    exact: bool
    """False if the path leads further than the file: this is the nearest part around it."""
    broken: bool
    """Whether a problem with this value, or one around it, was reported while the file was read."""


def locate(root: Mapping, path: Path) -> Place:
    """Return the place of ``path``, or of the nearest part around it that the file holds."""
    node: Node = root
    line, column, broken = _first_position(root), root.column, root.broken
    for part in path:
        if isinstance(node, Mapping) and (entry := node.entries.get(str(part))) is not None:
            line, column, node = entry
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            line, column = node.line, node.column
        else:
            return Place(line, column, node, False, broken)
        broken = broken or node.broken
    return Place(line, column, node, True, broken)


def _first_position(root: Mapping) -> int:
    return next(iter(root.entries.values())).line if root.entries else root.line


class Lines:
    """Positions by dotted path, such as ``faults.0.trigger.step`` or ``expect.checkpoint.step``.

    A position is the (line, column) of the key, both counted from 1, or of the item in a list.
    """

    def __init__(self, root: Mapping) -> None:
        self._root = root

    def get(self, path: str) -> tuple[int, int] | None:
        """Return the position of exactly this path, None if the file does not hold it."""
        place = locate(self._root, self._parts(path))
        return (place.line, place.column) if place.exact else None

    def nearest(self, path: str) -> tuple[int, int]:
        """Return the position of the path, or of the nearest key around it that the file holds."""
        place = locate(self._root, self._parts(path))
        return place.line, place.column

    def __getitem__(self, path: str) -> tuple[int, int]:
        if (position := self.get(path)) is None:
            raise KeyError(path)
        return position

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.get(path) is not None

    def _parts(self, path: str) -> Path:
        """Split at the dots, except those inside a key of the file (``environment.a.b`` with a key ``a.b``)."""
        words = path.split(".") if path else []
        parts: list[str | int] = []
        node: Node | None = self._root
        while words:
            taken, part = 1, words[0]
            if isinstance(node, Mapping):
                lengths = [n for n in range(1, len(words) + 1) if ".".join(words[:n]) in node.entries]
                taken = lengths[0] if lengths else 1
                part = ".".join(words[:taken])
                node = node.entries[part].value if lengths else None
                parts.append(part)
            elif isinstance(node, Sequence) and part.isdecimal():
                index = int(part)
                parts.append(index)
                node = node.items[index] if index < len(node.items) else None
            else:
                parts.append(part)
                node = None
            words = words[taken:]
        return tuple(parts)


def scalar_at(root: Mapping, path: Path) -> Scalar | None:
    """Return the scalar at a path, None if there is none."""
    place = locate(root, path)
    return place.node if place.exact and isinstance(place.node, Scalar) else None
