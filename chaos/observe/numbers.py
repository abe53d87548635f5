"""Single whole numbers by their digests: the value of a counter of which only the digest was recorded."""

from __future__ import annotations

from chaos.agent.digest import tensor_digest

_WIDTHS = {"int32": 4, "int64": 8}


def number_digests(number: int) -> frozenset[str]:
    """Return the digests that a parameter with this one number may have, not negative."""
    return frozenset(tensor_digest(dtype, (1,), number.to_bytes(width, "little")) for dtype, width in _WIDTHS.items())
