"""What may happen to packets on their way to a node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Impairment:
    """What happens to packets: milliseconds that they wait, more or less, and how many in a hundred are lost."""

    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
