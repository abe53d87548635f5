"""The evidence of a landing, compared with the rank's own record of the same act."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from chaos.evidence.doubt import Doubt
from chaos.evidence.injection.deaths import ACTING, required_end
from chaos.evidence.proof import Case


def agrees(event: str, *keys: str) -> Callable[[Case], Iterator[Doubt]]:
    """Return a proof's part: under each key the evidence agrees with the rank's first ``event`` of this fault."""

    def doubts(case: Case) -> Iterator[Doubt]:
        rank = case.injection.rank
        records = case.history.select(event, fault=case.fault.id, rank=rank)
        record = next((fact for fact in records if fact.pid == case.injection.pid), None)
        if record is None:
            return  # the kind's own proof doubts its absence
        for key in keys:
            shown, recorded = case.evidence.get(key), record.data.get(key)
            if shown != recorded:
                text = f"the evidence for rank {rank} says {key} {shown!r}; its own record says {recorded!r}"
                yield text, (case.landing.source, record.source)

    return doubts


def recorded(event: str, *keys: str) -> Callable[[Case], Iterator[Doubt]]:
    """Return the same part, and doubt a rank without ``event``: for kinds whose own proof reads only the evidence."""

    def doubts(case: Case) -> Iterator[Doubt]:
        rank, pid = case.injection.rank, case.injection.pid
        records = case.history.select(event, fault=case.fault.id, rank=rank)
        if all(record.pid != pid for record in records):
            yield f"rank {rank} has not recorded that the fault acted in process {pid}", (case.landing.source,)
        yield from agrees(event, *keys)(case)

    return doubts


def ends_as_shown(case: Case) -> Iterator[Doubt]:
    """Yield doubts unless the evidence of a rank that ended itself names the act and the required exit code."""
    yield from agrees(ACTING, "act")(case)
    required, code = required_end(case.fault), case.evidence.get("code")
    if required is not None and code != required.code:
        text = f"the evidence for rank {case.injection.rank} shows exit code {code}, not {required.code}"
        yield text, (case.landing.source,)


def hangs_as_shown(case: Case) -> Iterator[Doubt]:
    """Yield doubts unless the evidence of a hung rank names the act, and its process was alive."""
    yield from agrees(ACTING, "act")(case)
    if (state := case.evidence.get("state")) != "alive":
        text = f"the evidence for rank {case.injection.rank} shows its process as {state}, not alive"
        yield text, (case.landing.source,)


def severed_as_shown(case: Case) -> Iterator[Doubt]:
    """Yield doubts unless the evidence of a link names the act on the device."""
    records = case.history.select("fault.device", fault=case.fault.id, rank=case.injection.rank)
    shown = case.evidence.get("device")
    if records and shown not in {event.data.get("action") for event in records}:
        text = f"the evidence for rank {case.injection.rank} says {shown!r}, which its own record does not"
        yield text, (case.landing.source, *(event.source for event in records))
