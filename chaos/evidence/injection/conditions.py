"""The proof that a condition was laid on ranks, and that it lasted as planned.

A family says with :class:`Condition` which evidence a kind must show; :func:`condition` makes its proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from chaos.evidence.doubt import Doubt
from chaos.evidence.fields import Fields, number
from chaos.evidence.injection.cut_off import is_cut_off
from chaos.evidence.injection.unresponsive import silence_doubts
from chaos.evidence.proof import Case, Part, Proof
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.parts.fault import PlannedFault

Judge = Callable[[Fields, Fields], "str | None"]
"""From a fault's parameters and the evidence at one rank: the missing part, None where nothing is missing."""


@dataclass(frozen=True)
class Condition:
    """How evidence shows a condition.

    Args:
        shows: the required evidence of its landing.
        still: the required evidence just before the end, where it is observed in another way.
        unchanged: fields that must then equal those of the landing.
        taken: the possible remover, where it was to last until the launch has ended.
        longest: seconds from the act until it is put back, at most. A slow harness or machine can exceed the scenario's
            time. With the stand-in's timings ``fast`` a rank is lost after 5 s of silence. TCP sends again 0.2, 0.6,
            1.4, 3.0 and 6.2 s after the loss, so a cut of more than 3 s is a silence of more than 6.
        of_rank: it ends with the rank's own process, and by nothing else.
    """

    shows: Judge
    still: Judge | None = None
    unchanged: tuple[str, ...] = ()
    taken: str = ""
    longest: float | None = None
    of_rank: bool = False


def condition(shown: Condition, words: str, fields: tuple[str, ...], *parts: Part) -> Proof:
    """Return the proof of a condition; ``parts`` are further doubts of its kind."""

    def doubts(case: Case) -> Iterator[Doubt]:
        yield from condition_doubts(shown, case.history, case.fault, case.landing, case.evidence)
        yield from silence_doubts(case.history, case.fault, case.landing, case.evidence, case.injection)
        for part in parts:
            yield from part(case)

    return Proof(words, fields, doubts)


def at_least(key: str, parameter: str, unit: str) -> Callable[[Fields, Fields], str | None]:
    """Return a judge of whether the number under ``key`` reaches the parameter ``parameter``."""

    def judge(parameters: Fields, evidence: Fields) -> str | None:
        value, limit = number(evidence, key), number(parameters, parameter)
        if value is None or limit is None or value < limit:
            return f"{key} is {evidence.get(key)}, and {parameter} {parameters.get(parameter)} {unit}"
        return None

    return judge


def at_most(key: str, parameter: str, default: float) -> Callable[[Fields, Fields], str | None]:
    """Return a judge of whether the number under ``key`` is within the parameter ``parameter``."""

    def judge(parameters: Fields, evidence: Fields) -> str | None:
        value, limit = number(evidence, key), number({parameter: default, **parameters}, parameter)
        if value is None or limit is None or value > limit:
            return f"{key} is {evidence.get(key)}, and {parameter} {limit:g}"
        return None

    return judge


def is_true(key: str) -> Callable[[Fields, Fields], str | None]:
    def judge(parameters: Fields, evidence: Fields) -> str | None:
        del parameters
        return None if evidence.get(key) is True else f"{key} is {evidence.get(key)}"

    return judge


def is_text(key: str) -> Callable[[Fields, Fields], str | None]:
    def judge(parameters: Fields, evidence: Fields) -> str | None:
        del parameters
        return None if isinstance(evidence.get(key), str) and evidence[key] else f"{key} is {evidence.get(key)}"

    return judge


_LOOK_SECONDS = 3.0
"""The longest allowed time from the last look at a condition to its rank's last record. The harness looks all the
time."""


def condition_doubts(
    shown: Condition, history: History, fault: PlannedFault, landing: Event, evidence: dict[str, object]
) -> Iterator[Doubt]:
    """Yield every reason to doubt that the condition was laid on one rank, and lasted as planned."""
    if (doubt := shown.shows(fault.parameters, evidence)) is not None:
        yield f"the evidence for rank {evidence.get('rank')} does not show it: {doubt}", (landing.source,)
    seconds = number(fault.parameters, "seconds")
    endings = history.select("fault.ending", fault=fault.id, attempt=landing.attempt)
    if seconds is None:
        if not shown.of_rank:
            yield from _to_the_end(shown, history, fault, landing, evidence, endings)
    elif not endings:
        yield f"its end is not recorded; planned was {seconds:g} s", (landing.source,)
    elif (lasted := (endings[0].mono - landing.mono) / 1e9) < seconds:
        reason = f"it was planned for {seconds:g} s, but ended with the launch after {lasted:.3f} s"
        yield reason, (landing.source, endings[0].source)
    elif (vanished := _vanished(shown, fault, evidence, endings[0])) is not None:
        reason = f"nothing shows that rank {evidence.get('rank')} was under the fault up to its end: {vanished}"
        yield reason, (landing.source, endings[0].source)
    yield from _too_long(shown, history, fault, landing)


def _too_long(shown: Condition, history: History, fault: PlannedFault, landing: Event) -> Iterator[Doubt]:
    """Yield reasons to doubt that a silence without an answer was put back before ranks may count as lost."""
    longest = None if is_cut_off(fault) else shown.longest
    made = history.select("fault.injecting", fault=fault.id, attempt=landing.attempt)
    healed = history.select("fault.healed", fault=fault.id)
    if longest is None or not made or not healed:
        return
    lasted = (healed[0].mono - made[0].mono) / 1e9
    if lasted > longest:
        doubt = f"it was undone {lasted:.3f} s after it was made; after {longest:g} s ranks may count as lost"
        yield doubt, (made[0].source, healed[0].source)


def _to_the_end(
    shown: Condition, history: History, fault: PlannedFault, landing: Event, landed: Fields, endings: list[Event]
) -> Iterator[Doubt]:
    """Yield reasons to doubt that a condition without an end of its own was there until the launch had ended."""
    rank = landed.get("rank")
    if not endings:
        yield (
            f"no check was made whether rank {rank} was still under the fault when the launch ended",
            (landing.source,),
        )
        return
    ending = endings[0]
    if (vanished := _vanished(shown, fault, landed, ending)) is not None:
        taken = f"; {shown.taken}" if shown.taken else ""
        doubt = f"nothing shows that rank {rank} was under the fault until the launch ended: {vanished}{taken}"
        yield doubt, (landing.source, ending.source)
        return
    entry = _of_rank(landed, ending)
    if entry is None or entry.get("ended") is not True:
        return
    looked = number(entry, "looked")
    until = _last_of(history, fault, landing, entry, looked)
    if looked is None or until is None or until - looked > _LOOK_SECONDS * 1e9:
        late = "" if looked is None or until is None else f": the last look was {(until - looked) / 1e9:.3f} s before"
        yield f"nothing shows that rank {rank} was under the fault until its process ended{late}", (ending.source,)
    again = [
        event
        for event in history.select("agent.start", attempt=landing.attempt, rank=rank)
        if event.pid != entry.get("pid") and landing.maybe_before(event)
    ]
    if again:
        doubt = (
            f"rank {rank} was started again as process {again[0].pid}, which is not under the fault: write its seconds"
        )
        yield doubt, (again[0].source, landing.source)


def _last_of(history: History, fault: PlannedFault, landing: Event, entry: Fields, looked: float | None) -> int | None:
    """Return the time (ns) of the process's last record, or of another fault that hits it; None where it is unknown."""
    rank, pid = entry.get("rank"), entry.get("pid")
    recorded = history.select(attempt=landing.attempt, rank=rank, pid=pid, writer="agent")
    made = history.select("fault.injecting", attempt=landing.attempt, rank=rank, pid=pid)
    others = [event for event in made if event.data.get("fault") != fault.id and event.mono >= (looked or 0)]
    last = max((event.mono for event in recorded), default=None)
    return None if last is None else min([last, *(event.mono for event in others)])


def _of_rank(landed: Fields, ending: Event) -> dict[str, Any] | None:
    listed = ending.data.get("evidence")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return next((entry for entry in entries if entry.get("rank") == landed.get("rank")), None)


def _vanished(shown: Condition, fault: PlannedFault, landed: Fields, ending: Event) -> str | None:
    """Return why the evidence just before the end does not show the condition; None where it does."""
    entry = _of_rank(landed, ending)
    if entry is None:
        return "it was not looked at then"
    if entry.get("pid") != landed.get("pid"):
        return f"process {entry.get('pid')} was checked, but the fault landed on process {landed.get('pid')}"
    judge = shown.still or shown.shows
    if (doubt := judge(fault.parameters, entry)) is not None:
        return doubt
    other = next((key for key in shown.unchanged if entry.get(key) != landed.get(key)), None)
    return None if other is None else f"its {other} is {entry.get(other)}, and was {landed.get(other)}"
