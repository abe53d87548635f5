"""Which mechanisms acted, by the calls into MindSpore's handlers, by the SDK's own log and by those of the ranks."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.evidence.artifacts import Artifacts
from chaos.history.reader import History
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.registry import Signs, in_order

REPAIR_BEGINS, STATE = "ttp.repair_begin", "ttp.state"


@dataclass
class Acted:
    """Evidence by mechanism: what was seen, and where. ``listened`` says whether anybody was there to see."""

    evidence: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    listened: bool = False

    def add(self, mechanism: str, seen: str, where: str) -> None:
        """Note a sign of a mechanism."""
        self.evidence.setdefault(mechanism, []).append((seen, where))


def mechanisms(history: History, artifacts: Artifacts, attempt: str) -> Acted:
    """Every sign of a mechanism in one attempt."""
    acted, signs = Acted(), all_signs()
    acted.listened = history.first("agent.start", attempt=attempt) is not None
    handlers = {handler: own.name for own in signs for handler in own.handlers}
    for one in history.select("handler.enter", attempt=attempt):
        name = str(one.data.get("name"))
        if name in handlers:
            acted.add(handlers[name], f"handler {name} on rank {one.rank}", one.source)
    for event in artifacts.sdk_events(attempt):
        acted.listened = True
        mechanism = _told(event, signs)
        if mechanism is not None:
            acted.add(mechanism, f"the SDK's log: {event.kind.removeprefix('ttp.')}", event.source)
    lines = {kind: (own.name, what) for own in signs for kind, what in own.ranks.items()}
    for rank in sorted({one.rank for one in history.select("agent.start", attempt=attempt) if one.rank is not None}):
        for event in artifacts.signs(attempt, rank):
            if event.kind in lines:
                mechanism, what = lines[event.kind]
                acted.add(mechanism, f"the log of rank {rank}: {what}", event.source)
    return acted


def all_signs() -> tuple[Signs, ...]:
    """The signs of all mechanisms, each once."""
    found = {one.signs.name: one.signs for one in in_order() if one.signs is not None}
    return tuple(found.values())


def _told(event: LogEvent, signs: tuple[Signs, ...]) -> str | None:
    """Whose sign a line of the SDK's log is."""
    if event.kind == REPAIR_BEGINS:
        word = str(event.fields.get("repair"))
        own = [one.name for one in signs if word in one.repairs]
        return next(iter(own or [one.name for one in signs if one.any_repair]), None)
    if event.kind == STATE:
        return next((one.name for one in signs if str(event.fields.get("state")) in one.states), None)
    return next((one.name for one in signs if event.kind in one.lines), None)
