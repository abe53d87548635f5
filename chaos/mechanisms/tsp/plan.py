"""TSP: the training pauses after a step and goes on. Nothing is lost, so nothing is repaired or trained again."""

from __future__ import annotations

from chaos.plan.describe import ranks
from chaos.plan.parts.response import Recovery
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.response import Answer, Context
from chaos.plan.recovery.vendor import DOCUMENT


def answer(context: Context, incident: Incident) -> Answer | None:
    """Return a pause; None for any other incident.

    A rank lost meanwhile ends the pause, and another mechanism answers the loss.
    """
    del context
    pause = incident.first
    if not pause.effect.pauses:
        return None
    seconds = float(pause.fault.parameters["seconds"])
    if incident.inside:
        lost = ", ".join(f"{ranks(fault.fault.ranks)} by fault {fault.fault.id}" for fault in incident.inside)
        why = f"TSP pauses all ranks after the same step ({DOCUMENT}), and ranks are lost before they go on: {lost}"
        recovery = Recovery("TSP", incident.ids, None, succeeds=False)
        return Answer(recovery, why, pause.path, left=Incident(incident.inside))
    switched = ", in which they switch to the backup network" if pause.fault.parameters.get("switch") else ""
    why = (
        f"TSP pauses all ranks after the same step for {seconds:g} s{switched}, and they go on ({DOCUMENT}): nothing "
        "is lost, and no step is trained twice"
    )
    how = (
        f"the pause is asked for at {pause.moment.earliest}: the SDK lets the ranks stop after the first step that all "
        "of them can still stop at"
    )
    return Answer(Recovery("TSP", incident.ids, None), why, pause.path, how=how)
