"""Part of check ``injection``: proof that a value inside a rank was changed silently, and that the change had an
effect.

The proof is the rank's own record of the value before and after. A change that left the state of the step as it is in
the fault-free run has changed no computed value, so the later steps would prove nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from chaos.evidence.baseline import at_baseline, differing, loss_of
from chaos.evidence.doubt import Doubt
from chaos.evidence.facts import TRAIN, digests, places
from chaos.evidence.injection.agreement import agrees
from chaos.evidence.injection.triggers import Demands, barrier, place_text
from chaos.evidence.order import out_of_order
from chaos.evidence.proof import Case, Proof, all_of
from chaos.faults.values.plan_corruption import BATCH, BY_ITSELF, FLIP, LOSS, what_of
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault

if TYPE_CHECKING:
    from chaos.evidence.artifacts import Artifacts

KINDS = (FLIP, BATCH, LOSS)
ALTERED = "fault.altered"
FACTS = ("what", "parameter", "element", "bit", "dtype", "before", "after", "from_step")
"""Fields of a rank's record of the change that the evidence repeats, as far as they are known."""


def altered_again(history: History, fault: PlannedFault) -> list[Event]:
    """Return the records of the change by ranks that made it more than once."""
    if fault.kind not in KINDS:
        return []
    records = history.select(ALTERED, fault=fault.id)
    ranks = [event.rank for event in records]
    return [event for event in records if ranks.count(event.rank) > 1]


def altered_doubts(
    history: History, artifacts: Artifacts, fault: PlannedFault, wanted: Demands, landing: Event, injection: Event
) -> Iterator[Doubt]:
    """Yield every reason to doubt the change in the rank of ``injection``. None for faults of another kind."""
    if fault.kind not in KINDS:
        return
    rank = injection.rank
    records = [event for event in history.select(ALTERED, fault=fault.id, rank=rank) if event.pid == injection.pid]
    if not records:
        yield f"rank {rank}'s own history does not say that it changed anything", (landing.source,)
        return
    own = records[0]
    what = what_of(fault)
    if own.data.get("what") != what:
        yield f"rank {rank} changed {own.data.get('what')}, not {what}", (own.source,)
    point = barrier(own.data.get("step"), own.data.get("phase"))
    if point not in wanted.barriers:
        where = place_text(point) if point else "an unknown place"
        yield f"rank {rank} changed it at {where}: the fault that was planned was not made", (own.source,)
    if (told := out_of_order(injection, own)) is not None:
        yield f"rank {rank} changed it before it was told to{told}", (own.source, injection.source)
    if (told := out_of_order(own, landing)) is not None:
        yield f"the landing is recorded before rank {rank} changed it{told}", (landing.source, own.source)
    step = own.data.get("step")
    if not isinstance(step, int):
        return
    if fault.kind == FLIP:
        yield from _flip_doubts(fault, own)
    if what == "weight":
        yield from _weight_doubts(history, own, step)
    yield from _felt(history, artifacts, fault, own, step)


def _flip_doubts(fault: PlannedFault, own: Event) -> Iterator[Doubt]:
    """Yield a doubt unless the record has one bit with its value, and the scenario's bit where it names one."""
    bit, element = own.data.get("bit"), own.data.get("element")
    before, after = own.data.get("before"), own.data.get("after")
    if not isinstance(bit, int) or not isinstance(element, int) or before is None or after is None:
        yield f"rank {own.rank} has not recorded which bit of what value it flipped", (own.source,)
        return
    if before == after and before != "nan":
        yield f"the value is {before} before and after", (own.source,)
    for name, seen in (("bit", bit), ("element", element), ("parameter", own.data.get("parameter"))):
        asked = fault.parameters.get(name)
        if asked is not None and seen != asked:
            yield f"rank {own.rank} hit {name} {seen}, not {asked}", (own.source,)


def _weight_doubts(history: History, own: Event, step: int) -> Iterator[Doubt]:
    """Yield a doubt unless the weight was as recorded after the step before, and differs after the change."""
    name, before, after = (own.data.get(key) for key in ("parameter", "digest_before", "digest_after"))
    if before is None or before == after:
        yield f"rank {own.rank}'s {name} has the same digest before and after", (own.source,)
    states = [
        fact
        for event in ("initial", "digest")
        for fact in history.select(event, attempt=own.attempt, rank=own.rank, pid=own.pid)
        if fact.seq < own.seq and fact.data.get("step", 0) == step - 1
    ]
    recorded = [(event.data.get("parameters") or {}).get(str(name)) for event in states]
    if before not in recorded:
        seen = f"what rank {own.rank} has flipped a bit in is not its {name} after step {step - 1}"
        yield seen, (own.source, *places(states))


def _felt(history: History, artifacts: Artifacts, fault: PlannedFault, own: Event, step: int) -> Iterator[Doubt]:
    """Yield a doubt unless the step's outcome differs from the fault-free run's in the fault's way."""
    baseline = digests(artifacts.baseline, TRAIN).get(own.rank or 0, {}) if artifacts.baseline else {}
    # The step may have been trained again since, and without the change.
    mine = next(
        (event for event in _recorded(history, own, step) if event.seq > own.seq and event.pid == own.pid), None
    )
    before = next((event for event in reversed(_recorded(history, own, step - 1)) if event.mono < own.mono), None)
    theirs = baseline.get(step)
    if mine is None or theirs is None:
        yield (
            f"there is nothing to compare rank {own.rank}'s step {step} with, so it is not known whether it is felt",
            (own.source,),
        )
        return
    if not differing(mine.data.get("parameters"), theirs.data.get("parameters")):
        seen = (
            f"rank {own.rank}'s state after step {step} is the fault-free run's: the fault changed nothing that counts"
        )
        yield seen, (mine.source, at_baseline(theirs))
    elif what_of(fault) not in BY_ITSELF:
        yield from _differs_before(own, step, before, baseline.get(step - 1))
    if fault.kind == BATCH:
        if before is None or before.data.get("batch") is None or mine.data.get("batch") != before.data["batch"]:
            yield f"rank {own.rank} has not trained the batch of step {step - 1} in step {step}", (mine.source,)
        if mine.data.get("batch") == theirs.data.get("batch"):
            yield f"rank {own.rank} trained its own batch in step {step}", (mine.source, at_baseline(theirs))
    if fault.kind == LOSS:
        loss = loss_of(mine)
        asked = float(str(fault.parameters.get("value", "nan")))
        if loss is None or math.isfinite(loss) or math.isnan(loss) != math.isnan(asked):
            yield f"rank {own.rank}'s loss of step {step} is {loss}, not {asked}", (mine.source,)


def _differs_before(own: Event, step: int, before: Event | None, theirs: Event | None) -> Iterator[Doubt]:
    """Yield a doubt where the state differed from the fault-free run's already before the change."""
    if before is None or theirs is None:
        return  # of one change, check ``loss`` compares the steps before it
    if names := differing(before.data.get("parameters"), theirs.data.get("parameters")):
        seen = f"rank {own.rank}'s {names[0]} was already another than the fault-free run's after step {step - 1}"
        yield f"{seen}, so nothing tells whether the fault is felt", (before.source, at_baseline(theirs))


def _recorded(history: History, own: Event, step: int) -> list[Event]:
    """Return the rank's digests of a step in its launch, in order: the step may have been trained more than once."""
    return history.select("digest", attempt=own.attempt, rank=own.rank, step=step)


def may_be_infinite(plan: Plan, step: int) -> bool:
    """Return whether a training of this step that does not count may have come to a value that is no number."""
    return any(
        fault.effect.alters == "value"
        and what_of(fault) != "batch"
        and step >= int(fault.trigger.get("step", step + 1))
        for fault in plan.faults
    )


def other_batches(plan: Plan) -> set[tuple[int, int]]:
    """Return rank and step of counted batches that are planned to differ; check ``injection`` examines each."""
    return {
        (rank, step)
        for fault in plan.faults
        if fault.effect.alters == "value"
        and what_of(fault) == "batch"
        and not fault.taken_back
        and isinstance(step := fault.trigger.get("step"), int)
        for rank in fault.ranks
    }


def _altered(case: Case) -> Iterator[Doubt]:
    yield from altered_doubts(case.history, case.artifacts, case.fault, case.wanted, case.landing, case.injection)


CHANGED = Proof(
    "the rank's own record of the value before and after, and a state that differs",
    ("what",),
    all_of(_altered, agrees(ALTERED, *FACTS)),
)
