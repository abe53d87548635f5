"""Signals."""

from __future__ import annotations

from chaos.faults.family import Attached, Family, Kind, Undo
from chaos.plan.effect import Effect

FAMILY = Family(
    kinds={
        "freeze": Kind("chaos.faults.signals.freeze:KIND", "chaos.faults.signals.proof:FREEZE"),
        "kill": Kind("chaos.faults.signals.kill:KIND", "chaos.faults.signals.proof:KILL", Effect(signal=9)),
        "suspend": Kind(
            "chaos.faults.signals.suspend:KIND",
            "chaos.faults.signals.proof:SUSPEND",
            Effect(shows=19, silenced="chaos.faults.signals.proof:is_stopped", stopped=True),
        ),
        "terminate": Kind(
            "chaos.faults.signals.terminate:KIND", "chaos.faults.signals.proof:TERMINATE", Effect(shows=15)
        ),
    },
    undo={
        "resume-process": Undo(
            "chaos.faults.signals.undo:resume_process", attached=Attached("resume-adopted", "kill -CONT {pid}")
        ),
        "resume-adopted": Undo("chaos.faults.signals.undo:resume_adopted"),
    },
    rules="chaos.faults.signals.plan:RULES",
)
