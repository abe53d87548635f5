"""Part of check ``injection``: proof that a process beside the ranks was hit, the launcher or the scheduler."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import exit_status, places, signal_name, signal_number
from chaos.evidence.injection.deaths import required_end
from chaos.evidence.injection.identity import identity_doubt
from chaos.evidence.order import out_of_order
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault


def beside_doubts(history: History, fault: PlannedFault, landing: Event, injections: list[Event]) -> Iterator[Doubt]:
    """Yield every reason to doubt it: the process must have been identified, and have ended by this act alone."""
    evidence = [entry for entry in landing.data.get("evidence") or [] if isinstance(entry, dict)]
    if len(evidence) != 1 or len(injections) != 1:
        yield (
            f"{len(injections)} acts and {len(evidence)} pieces of evidence, where one of each is expected",
            (landing.source,),
        )
        return
    act, shown = injections[0], evidence[0]
    if act.rank is not None or shown.get("rank") is not None or landing.data.get("ranks"):
        yield f"a rank was hit, not the {fault.role}", (act.source, landing.source)
    if act.pid != shown.get("pid"):
        yield f"process {act.pid} was hit, but the evidence is of process {shown.get('pid')}", (act.source,)
    if landing.mono < act.mono:
        yield "the landing is recorded before the injection", (landing.source, act.source)
    identified = [event for event in history.select("launcher.found", attempt=act.attempt) if event.pid == act.pid]
    in_role = [event for event in identified if event.data.get("role") == fault.role]
    if not in_role:
        yield f"process {act.pid} was never identified as the {fault.role}", (act.source, *places(identified))
    elif (doubt := identity_doubt(in_role, act)) is not None:
        reason = f"process {act.pid} is not proven to be the one identified as the {fault.role}: {doubt}"
        yield reason, (act.source, *places(identified))
    required = required_end(fault)
    if required is None:
        yield f"it is not known how the {fault.role} shows a fault of kind {fault.kind}", (landing.source,)
        return
    if signal_number(shown.get("signal")) != required.signal:
        shown_signal = signal_name(signal_number(shown.get("signal")))
        yield f"the evidence for the {fault.role} shows {shown_signal}, not {required}", (landing.source,)
    exits = [event for event in history.select("launcher.exit", attempt=act.attempt) if event.pid == act.pid]
    if not exits:
        yield f"no exit status of the {fault.role} (process {act.pid})", (act.source,)
    elif not required.was(exits[0]):
        yield f"the {fault.role} {exit_status(exits[0])}, not killed by {required}", (exits[0].source,)
    elif (disorder := out_of_order(act, exits[0])) is not None:
        yield f"the {fault.role} had ended before the injection{disorder}", (exits[0].source, act.source)
