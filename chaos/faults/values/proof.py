"""Part of check ``injection``: proof that a value inside a rank was changed silently, and that the change had an
effect.

The proof is the rank's own record of the value before and after. A change that left the state of the step as it is in
the fault-free run has changed no computed value, so the later steps would prove nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
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
    history: History,
    artifacts: Artifacts,
    fault: PlannedFault,
    demands: Demands,
    landing: Event,
    injection: Event,
    plan: Plan | None = None,
) -> Iterator[Doubt]:
    """Yield every reason to doubt the change in the rank of ``injection``. None for faults of another kind.

    Without a ``plan`` nothing is known of other faults.
    """
    if fault.kind not in KINDS:
        return
    rank = injection.rank
    records = [event for event in history.select(ALTERED, fault=fault.id, rank=rank) if event.pid == injection.pid]
    if not records:
        yield f"rank {rank}'s own history does not say that it changed anything", (landing.source,)
        return
    change = records[0]
    what = what_of(fault)
    if change.data.get("what") != what:
        yield f"rank {rank} changed {change.data.get('what')}, not {what}", (change.source,)
    point = barrier(change.data.get("step"), change.data.get("phase"))
    if point not in demands.barriers:
        where = place_text(point) if point else "an unknown place"
        yield f"rank {rank} changed it at {where}: the planned fault was not injected", (change.source,)
    if (order := out_of_order(injection, change)) is not None:
        yield f"rank {rank} changed it before it was told to{order}", (change.source, injection.source)
    if (order := out_of_order(change, landing)) is not None:
        yield f"the landing is recorded before rank {rank} changed it{order}", (landing.source, change.source)
    step = change.data.get("step")
    if not isinstance(step, int):
        return
    if fault.kind == FLIP:
        yield from _flip_doubts(fault, change)
    if what == "weight":
        yield from _weight_doubts(history, change, step)
    if plan is None or not gave_up(plan, history, change, step):
        yield from _felt(history, artifacts, fault, change, step)


def _flip_doubts(fault: PlannedFault, change: Event) -> Iterator[Doubt]:
    """Yield a doubt unless the record has one bit with its value, and the scenario's bit where it names one."""
    bit, element = change.data.get("bit"), change.data.get("element")
    before, after = change.data.get("before"), change.data.get("after")
    if not isinstance(bit, int) or not isinstance(element, int) or before is None or after is None:
        yield f"rank {change.rank} has not recorded which bit of what value it flipped", (change.source,)
        return
    if before == after and before != "nan":
        yield f"the value is {before} before and after", (change.source,)
    for name, value in (("bit", bit), ("element", element), ("parameter", change.data.get("parameter"))):
        planned = fault.parameters.get(name)
        if planned is not None and value != planned:
            yield f"rank {change.rank} hit {name} {value}, not {planned}", (change.source,)


def _weight_doubts(history: History, change: Event, step: int) -> Iterator[Doubt]:
    """Yield a doubt unless the weight was as recorded after the step before, and differs after the change."""
    name, before, after = (change.data.get(key) for key in ("parameter", "digest_before", "digest_after"))
    if before is None or before == after:
        yield f"rank {change.rank}'s {name} has the same digest before and after", (change.source,)
    states = [
        fact
        for event in ("initial", "digest")
        for fact in history.select(event, attempt=change.attempt, rank=change.rank, pid=change.pid)
        if fact.seq < change.seq and fact.data.get("step", 0) == step - 1
    ]
    recorded = [(event.data.get("parameters") or {}).get(str(name)) for event in states]
    if before not in recorded:
        text = f"what rank {change.rank} has flipped a bit in is not its {name} after step {step - 1}"
        yield text, (change.source, *places(states))


def _felt(history: History, artifacts: Artifacts, fault: PlannedFault, change: Event, step: int) -> Iterator[Doubt]:
    """Yield a doubt unless the step's outcome differs from the fault-free run's in the fault's way."""
    yield from state_doubts(history, artifacts, change, step, by_itself=what_of(fault) in BY_ITSELF)
    before, digest, baseline = _around(history, artifacts, change, step)
    if digest is None or (baseline_digest := baseline.get(step)) is None:
        return
    if fault.kind == BATCH:
        if before is None or before.data.get("batch") is None or digest.data.get("batch") != before.data["batch"]:
            yield f"rank {change.rank} has not trained the batch of step {step - 1} in step {step}", (digest.source,)
        if digest.data.get("batch") == baseline_digest.data.get("batch"):
            yield (
                f"rank {change.rank} trained its own batch in step {step}",
                (digest.source, at_baseline(baseline_digest)),
            )
    if fault.kind == LOSS:
        loss = loss_of(digest)
        planned = float(str(fault.parameters.get("value", "nan")))
        if loss is None or math.isfinite(loss) or math.isnan(loss) != math.isnan(planned):
            yield f"rank {change.rank}'s loss of step {step} is {loss}, not {planned}", (digest.source,)


def gave_up(plan: Plan, history: History, change: Event, step: int) -> bool:
    """Return whether the rank has failed in the step of a change, so that no state can show the effect.

    No planned fault may have ended it. Other checks then blame the job, which was to train on.
    """
    if any(fault.effect.alters is None for fault in plan.faults):
        return False
    recorded = partial(history.select, attempt=change.attempt, rank=change.rank, pid=change.pid)
    if recorded("step.end", step=step) or recorded("digest", step=step):
        return False
    return any(
        end.data.get("signal") is not None or end.data.get("code") not in (None, 0) for end in recorded("rank.exit")
    )


def _around(
    history: History, artifacts: Artifacts, change: Event, step: int
) -> tuple[Event | None, Event | None, Mapping[int, Event]]:
    """Return the rank's digests of the step before and of the step with the change, and the fault-free run's."""
    baseline = digests(artifacts.baseline, TRAIN).get(change.rank or 0, {}) if artifacts.baseline else {}
    # The step may have been trained again since, and without the change.
    digest = next(
        (event for event in _recorded(history, change, step) if event.seq > change.seq and event.pid == change.pid),
        None,
    )
    before = next((event for event in reversed(_recorded(history, change, step - 1)) if event.mono < change.mono), None)
    return before, digest, baseline


def state_doubts(
    history: History, artifacts: Artifacts, change: Event, step: int, *, by_itself: bool = False
) -> Iterator[Doubt]:
    """Yield a doubt unless the state after the step of a change differs from the fault-free run's.

    It must not have differed before, unless the change is seen ``by_itself``.
    """
    before, digest, baseline = _around(history, artifacts, change, step)
    baseline_digest = baseline.get(step)
    if digest is None or baseline_digest is None:
        yield (
            f"there is nothing to compare rank {change.rank}'s step {step} with, so its effect is unknown",
            (change.source,),
        )
        return
    if not differing(digest.data.get("parameters"), baseline_digest.data.get("parameters")):
        state = f"rank {change.rank}'s state after step {step}"
        text = f"{state} is the fault-free run's: the fault changed nothing that counts"
        yield text, (digest.source, at_baseline(baseline_digest))
    elif not by_itself:
        yield from _differs_before(change, step, before, baseline.get(step - 1))


def _differs_before(change: Event, step: int, before: Event | None, baseline_digest: Event | None) -> Iterator[Doubt]:
    """Yield a doubt where the state differed from the fault-free run's already before the change."""
    if before is None or baseline_digest is None:
        return  # of one change, check ``loss`` compares the steps before it
    if names := differing(before.data.get("parameters"), baseline_digest.data.get("parameters")):
        text = f"rank {change.rank}'s {names[0]} was already another than the fault-free run's after step {step - 1}"
        yield f"{text}, so the effect of the fault is unknown", (before.source, at_baseline(baseline_digest))


def _recorded(history: History, change: Event, step: int) -> list[Event]:
    """Return the rank's digests of a step in its launch, in order: the step may have been trained more than once."""
    return history.select("digest", attempt=change.attempt, rank=change.rank, step=step)


def may_be_infinite(plan: Plan, step: int) -> bool:
    """Return whether this step may have given an infinite or NaN value in a training that does not count."""
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
    parts = (case.history, case.artifacts, case.fault, case.demands, case.landing, case.injection)
    yield from altered_doubts(*parts, case.plan)


CHANGED = Proof(
    "the rank's own record of the value before and after, and a state that differs",
    ("what",),
    all_of(_altered, agrees(ALTERED, *FACTS)),
)
