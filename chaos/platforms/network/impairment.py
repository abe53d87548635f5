"""The impairments of packets on their way to a node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Impairment:
    """The impairment of packets: their delay and its variation in milliseconds, and the lost packets per hundred."""

    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
