"""Which TCP packets of those between two addresses are meant, by their ports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ports:
    """The ports of a TCP packet that are meant, 0 for whichever. With both 0 it is any packet, not one of TCP alone."""

    source: int = 0
    target: int = 0


ANY = Ports()
