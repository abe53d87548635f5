"""Signals."""

from __future__ import annotations

from chaos.faults.family import Family, Kind
from chaos.faults.signals import proof

FAMILY = Family(
    kinds={
        "freeze": Kind("chaos.faults.signals.freeze:KIND", proof.FREEZE),
        "kill": Kind("chaos.faults.signals.kill:KIND", proof.KILL),
        "suspend": Kind("chaos.faults.signals.suspend:KIND", proof.SUSPEND),
        "terminate": Kind("chaos.faults.signals.terminate:KIND", proof.TERMINATE),
    },
)
