"""The mechanisms that acted, by the calls of MindSpore's handlers, by the SDK's own log and by the ranks' logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.evidence.artifacts import Artifacts
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.recovery.registry import Signs, in_order

REPAIR_BEGINS, STATE = "ttp.repair_begin", "ttp.state"
_CLEAN, _SAVE = "clean", "save_ckpt"


@dataclass
class Acted:
    """Evidence by mechanism: each observation and its place. ``listened`` says whether anything recorded it."""

    evidence: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    listened: bool = False

    def add(self, mechanism: str, observation: str, where: str) -> None:
        """Note a sign of a mechanism."""
        self.evidence.setdefault(mechanism, []).append((observation, where))


def mechanisms(history: History, artifacts: Artifacts, attempt: str, *, cleans_before_saving: bool = False) -> Acted:
    """Return every sign of a mechanism in one attempt.

    With ``cleans_before_saving`` a clean-up belongs to the save that the same rank begins next, and is no other sign.
    """
    acted, signs = Acted(), all_signs()
    acted.listened = history.first("agent.start", attempt=attempt) is not None
    handlers = {handler: sign.name for sign in signs for handler in sign.handlers}
    for fact in history.select("handler.enter", attempt=attempt):
        name = str(fact.data.get("name"))
        if cleans_before_saving and name == _CLEAN and _saves_next(history, fact):
            continue
        if name in handlers:
            acted.add(handlers[name], f"handler {name} on rank {fact.rank}", fact.source)
    sign_of = _reader(signs)
    for event in artifacts.sdk_events(attempt):
        acted.listened = True
        mechanism = sign_of(event)
        if mechanism is not None:
            acted.add(mechanism, f"the SDK's log: {event.kind.removeprefix('ttp.')}", event.source)
    lines = {kind: (sign.name, what) for sign in signs for kind, what in sign.ranks.items()}
    for rank in sorted(
        {event.rank for event in history.select("agent.start", attempt=attempt) if event.rank is not None}
    ):
        for event in artifacts.signs(attempt, rank):
            if event.kind in lines:
                mechanism, what = lines[event.kind]
                acted.add(mechanism, f"the log of rank {rank}: {what}", event.source)
    return acted


def _saves_next(history: History, clean: Event) -> bool:
    """Return whether the next handler in the process of this clean-up is the one that saves."""
    calls = history.select("handler.enter", attempt=clean.attempt, rank=clean.rank)
    later = [call for call in calls if call.pid == clean.pid and call.seq > clean.seq]
    return bool(later) and min(later, key=lambda call: call.seq).data.get("name") == _SAVE


def all_signs() -> tuple[Signs, ...]:
    """Return the signs of all mechanisms, each once."""
    signs = {mechanism.signs.name: mechanism.signs for mechanism in in_order() if mechanism.signs is not None}
    return tuple(signs.values())


def _reader(signs: tuple[Signs, ...]) -> Callable[[LogEvent], str | None]:
    """Return a function that maps a line of the SDK's log to the name of its sign.

    A log may have very many lines.
    """
    lines = {kind: sign.name for sign in signs for kind in sign.lines}
    states = {state: sign.name for sign in signs for state in sign.states}
    repairs = {word: sign.name for sign in signs for word in sign.repairs}
    other_repair = next((sign.name for sign in signs if sign.any_repair), None)

    def sign_of(event: LogEvent) -> str | None:
        if event.kind == REPAIR_BEGINS:
            return repairs.get(str(event.fields.get("repair")), other_repair)
        if event.kind == STATE:
            return states.get(str(event.fields.get("state")))
        return lines.get(event.kind)

    return sign_of
