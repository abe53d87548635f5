"""Ranks that are lost while they live, and the end of a node that was given time to stop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone

from chaos.evidence.doubt import Doubt
from chaos.evidence.injection.cut_off import is_cut_off
from chaos.history.event import Event
from chaos.plan.effect import effect_of
from chaos.plan.parts.fault import PlannedFault


def is_silenced(fault: PlannedFault) -> bool:
    """Return whether its ranks are lost to the job while they live."""
    return effect_of(fault.kind).silenced is not None or is_cut_off(fault)


_APART = 0.05
"""Seconds by which the platform's time of day, which dates the end, may differ from the history's own clock."""


def ended_at(landing: Event) -> int | None:
    """Return the end of such a fault's node, on the clock of the history (ns); None where the landing does not tell.

    The platform gives the time of day. It is placed by the time of the landing, which was seen within moments of it.
    """
    return _end(landing, [entry for entry in landing.data.get("evidence") or [] if isinstance(entry, Mapping)])


def _end(landing: Event, evidence: Sequence[Mapping[str, object]]) -> int | None:
    nodes = [entry.get("node") for entry in evidence]
    times = [nanoseconds(entry.get("finished")) for entry in nodes if isinstance(entry, Mapping)]
    known = [moment for moment in times if moment is not None]
    return landing.mono - (landing.wall - max(known)) if known and len(known) == len(nodes) else None


def early_doubts(
    fault: PlannedFault, landing: Event, evidence: Sequence[Mapping[str, object]], injections: Sequence[Event]
) -> Iterator[Doubt]:
    """Yield a doubt where a node that was told to stop has ended before its time was over, so by another cause.

    One order stops all ranks of a node; the order to the next of them is recorded when the node has ended.
    """
    default = effect_of(fault.kind).grace
    if default is None:
        return
    grace = float(fault.parameters.get("grace", default))
    nodes: dict[object, list[Mapping[str, object]]] = {}
    for entry in evidence:
        shown = entry.get("node")
        nodes.setdefault(shown.get("container") if isinstance(shown, Mapping) else None, []).append(entry)
    for of_node in nodes.values():
        ranks = {entry.get("rank") for entry in of_node}
        orders = sorted((event for event in injections if event.rank in ranks), key=lambda event: event.mono)
        end = _end(landing, of_node)
        if orders and end is not None and (took := (end - orders[0].mono) / 1e9) < grace - _APART:
            text = f"the node ended {took:.3f} s after the order to stop, and had {grace:g} s: something else ended it"
            yield text, (landing.source, orders[0].source)


def nanoseconds(text: object) -> int | None:
    """Return a time in the form of RFC 3339, up to nanoseconds, in UTC; None for any other text."""
    if not isinstance(text, str) or not text.endswith("Z"):
        return None
    whole, _, rest = text.removesuffix("Z").partition(".")
    try:
        seconds = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc).timestamp()
        return int(seconds) * 10**9 + int(rest.ljust(9, "0")[:9] or 0)
    except ValueError:
        return None
