"""Pauses."""

from __future__ import annotations

from chaos.faults.family import Family, Kind, Undo

FAMILY = Family(
    kinds={
        "pause": Kind("chaos.faults.pause.pause:KIND", "chaos.faults.pause.proof:PAUSED", parameters={"seconds": 2}),
    },
    undo={
        "continue-training": Undo("chaos.faults.pause.undo:continue_training"),
    },
)
