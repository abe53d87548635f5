"""The TCP packets between two addresses that a rule matches, by their ports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ports:
    """The ports of matching TCP packets, 0 for any port.

    With both 0 any packet matches, not only TCP.
    """

    source: int = 0
    target: int = 0


ANY = Ports()
