"""Part of check ``injection``: whether the trigger held when the fault was made, by the records until then.

Of alternatives (``any``) at least one must hold by evidence: the harness's own belief is no evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import by_rank
from chaos.evidence.injection.triggers import barrier, barrier_of, demands, place_text
from chaos.evidence.order import TELLS_NS, out_of_order
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault


@dataclass(frozen=True)
class _Fired:
    """A fault that was made: ``act`` is its first injection. ``barriers``: whether its trigger's barriers count."""

    plan: Plan
    history: History
    artifacts: Artifacts
    landing: Event
    act: Event
    barriers: bool

    def doubts(self, trigger: Mapping[str, Any]) -> Iterator[Doubt]:
        """Yield every reason to doubt that this trigger, or part of one, held."""
        yield from self._condition_doubts(trigger)
        for part in trigger.get("all") or ():
            yield from self.doubts(part)
        alternatives = [list(self.doubts(part)) for part in trigger.get("any") or ()]
        if len(alternatives) == 1:
            yield from alternatives[0]
        elif alternatives and all(alternatives):
            each = "; ".join(" and ".join(text for text, _ in doubts) for doubts in alternatives)
            where = dict.fromkeys(place for doubts in alternatives for _, places in doubts for place in places)
            yield f"no alternative of the trigger held: {each}", tuple(where)

    def _condition_doubts(self, trigger: Mapping[str, Any]) -> Iterator[Doubt]:
        """Yield the doubts about the conditions in the trigger itself."""
        if self.barriers and (planned_barrier := barrier_of(trigger)) is not None:
            yield from self._held_at(planned_barrier)
        if (seconds := trigger.get("elapsed")) is not None:
            yield from self._elapsed(float(seconds))
        if other := trigger.get("after"):
            before = self.history.select("fault.landed", fault=other)
            if not before or out_of_order(before[0], self.act) is not None:
                yield f"injected before fault {other} had landed", (self.act.source,)
        if other := trigger.get("healed"):
            over = self.history.select("fault.healed", fault=other)
            if not over or over[0].mono > self.act.mono:
                yield f"injected before fault {other} had ended", (self.act.source,)
        if line := trigger.get("log"):
            text = str(line.get("contains"))
            if not self.artifacts.log_contains(self.act.attempt or "", text, line.get("rank")):
                yield f"no log of the job contains {line.get('contains')!r}", (self.act.source,)

    def _held_at(self, planned_barrier: tuple[int | None, str]) -> Iterator[Doubt]:
        """Yield a doubt unless every rank was held there; each rank's own record is judged with the rank."""
        entries = [entry for entry in self.landing.data.get("evidence") or [] if isinstance(entry, dict)]
        places = [entry["barrier"] for entry in entries if isinstance(entry.get("barrier"), dict)]
        if len(places) < max(1, len(entries)) or any(
            barrier(place.get("step"), place.get("phase")) != planned_barrier for place in places
        ):
            yield f"not held at {place_text(planned_barrier)}", (self.landing.source,)

    def _elapsed(self, seconds: float) -> Iterator[Doubt]:
        # The harness counts from when it knew of them all: the time of a message is in its favour.
        begun = [events[0] for events in by_rank(self.history, "step.begin", self.act.attempt or "").values()]
        firsts = [event.mono - min(event.error, TELLS_NS) for event in begun]
        if len(firsts) < self.plan.layout.ranks:
            yield "the start of elapsed time is not known: not every rank has a first step", (self.act.source,)
        elif self.act.mono - max(firsts) < seconds * 1e9:
            yield f"injected {(self.act.mono - max(firsts)) / 1e9:.3f} s after the first step", (self.act.source,)


def trigger_doubts(
    plan: Plan, history: History, artifacts: Artifacts, fault: PlannedFault, landing: Event, injections: list[Event]
) -> Iterator[Doubt]:
    """Yield every reason to doubt that the fault was made when its trigger held, and not before.

    Barriers of a trigger without alternatives are judged rank by rank (chaos.checks.injection.held_ranks).
    """
    if not injections:
        return
    act = min(injections, key=lambda event: event.mono)
    alternatives = not demands(fault.trigger).every
    yield from _Fired(plan, history, artifacts, landing, act, alternatives).doubts(fault.trigger)
