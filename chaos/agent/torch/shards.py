"""Tensors that are cut over ranks (DTensor of PyTorch): this rank's part, and the ranks that hold the same parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def local_part(tensor: Any) -> Any:
    """Return the part of a tensor that this rank holds; a tensor that is not cut is its own part."""
    if not hasattr(tensor, "to_local"):
        return tensor
    part = tensor.to_local()
    return part.wait() if hasattr(part, "wait") else part  # of a collective that may still be under way


def is_cut(tensor: Any) -> bool:
    """Return whether ranks hold different parts of a tensor."""
    return any(not placement.is_replicate() for placement in getattr(tensor, "placements", ()))


def holders(parameters: Iterable[tuple[str, Any]]) -> list[int] | None:
    """Return the ranks that hold the same parts as this rank of all tensors; None where no tensor is cut."""
    same: set[int] | None = None
    for _, tensor in parameters:
        if is_cut(tensor):
            ranks = _holders(tensor)
            same = ranks if same is None else same & ranks
    return None if same is None else sorted(same)


def _holders(tensor: Any) -> set[int]:
    """Return the ranks of the tensor's mesh that differ from this one only in dimensions over which it is not cut."""
    mesh = tensor.device_mesh
    place = tuple(
        slice(None) if placement.is_replicate() else at
        for placement, at in zip(tensor.placements, mesh.get_coordinate())
    )
    return set(mesh.mesh[place].flatten().tolist())
