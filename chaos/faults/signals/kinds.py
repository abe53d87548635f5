"""Signals."""

from __future__ import annotations

from chaos.faults.family import Attached, Family, Kind, Undo
from chaos.faults.signals import proof
from chaos.plan.effect import Effect

FAMILY = Family(
    kinds={
        "freeze": Kind("chaos.faults.signals.freeze:KIND", proof.FREEZE),
        "kill": Kind("chaos.faults.signals.kill:KIND", proof.KILL, Effect(signal=9)),
        "suspend": Kind(
            "chaos.faults.signals.suspend:KIND",
            proof.SUSPEND,
            Effect(shows=19, silenced=proof.is_stopped, stopped=True),
        ),
        "terminate": Kind("chaos.faults.signals.terminate:KIND", proof.TERMINATE, Effect(shows=15)),
    },
    undo={
        "resume-process": Undo(
            "chaos.faults.signals.undo:resume_process", attached=Attached("resume-adopted", "kill -CONT {pid}")
        ),
        "resume-adopted": Undo("chaos.faults.signals.undo:resume_adopted"),
    },
    rules="chaos.faults.signals.plan:RULES",
)
