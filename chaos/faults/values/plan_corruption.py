"""Silent corruption, which nothing reports: the parts that can still be compared, and the promise.

No mechanism of the vendor's is promised to find it. So the plan promises that nothing acts and that the training goes
on; later values are compared with nothing, and the scenario has to say that it wants just that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from chaos.base.rank_sets import named
from chaos.plan.change import Change
from chaos.plan.draft import Draft
from chaos.plan.parts.equivalence import Comparable
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.layout import loss_ranks
from chaos.plan.problems import Problems
from chaos.plan.schedule import Scheduled
from chaos.plan.traits import JobTraits

PLACES: Mapping[str, str] = MappingProxyType(
    {"gradient": "allreduce.enter", "weight": "step.begin", "activation": "forward"}
)
"""Values in which a bit can be flipped, each with its phase."""

FLIP, BATCH, LOSS = "flip-bit", "wrong-batch", "nonfinite-loss"
_WHAT = {BATCH: "batch", LOSS: "loss"}

BY_ITSELF = ("weight", "batch", "loss")
"""Values whose change shows in the rank's own record of the step, whatever came before.

For other values only a state that differs from the fault-free run's shows it.
"""


def what_of(fault: PlannedFault) -> str:
    """Return the kind of value that the fault changes: gradient, weight, activation, batch or loss."""
    return _WHAT.get(fault.kind) or str(fault.parameters.get("where", "gradient"))


def with_article(what: str) -> str:
    """Return the word with its article."""
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"


def stays(fault: PlannedFault) -> bool:
    """Return whether only the hit ranks are wrong from then on: nothing makes their weights equal to the replicas'."""
    return fault.effect.alters == "value" and what_of(fault) == "weight"


def corruptions(faults: Sequence[Scheduled]) -> Iterator[Change]:
    """Yield each silent corruption, with the sign that it was made."""
    for fault in faults:
        if fault.effect.alters == "value":
            what = what_of(fault.fault)
            shown_by_state = "" if what in BY_ITSELF else with_article(what)
            yield Change(fault, _limit(fault), silent=True, shown_by_state=shown_by_state)


def _limit(scheduled_fault: Scheduled) -> Comparable:
    """Return how far states and losses can be compared because of one fault of this kind."""
    fault, step = scheduled_fault.fault, scheduled_fault.moment.earliest.step
    what = what_of(fault)
    # The loss of the step itself is computed before its gradients are reduced.
    losses = step if what == "gradient" else step - 1
    why = f"fault {fault.id} changes {with_article(what)} in step {step}, and no mechanism is promised to detect it"
    if what == "batch":  # another batch, but a good one
        return Comparable(step - 1, losses, why)
    return Comparable(step - 1, losses, why, finite_until=losses, finite_gradients_until=step - 1)


def explain_corruptions(faults: Sequence[PlannedFault]) -> tuple[str, ...]:
    """Return the promise for each silent corruption."""
    return tuple(
        f"fault {fault.id} changes {with_article(what_of(fault))} of its ranks in step {fault.trigger['step']} and "
        f"reports nothing. No mechanism is promised to detect it, so none may act on it, and {_comes_of(fault)}"
        for fault in faults
        if fault.effect.alters == "value"
    )


def _comes_of(fault: PlannedFault) -> str:
    if fault.taken_back:
        return "since the step is trained again from an earlier state, everything must then be as without the fault"
    return "the results from then on are not compared"


def check_corruption(draft: Draft, problems: Problems) -> None:
    """Note corruption that cannot be made, that cannot be shown, or whose outcome is not known."""
    scenario, faults = draft.scenario, draft.faults
    silent = [fault for fault in faults if fault.effect.alters == "value"]
    for fault in silent:
        _check_place(draft, fault, problems)
        if what_of(fault.fault) == "loss":
            _check_has_loss(draft, fault, problems)
        if stays(fault.fault):
            _check_alone(fault, faults, problems)
    calling = [fault for fault in faults if fault.lethal or fault.raised or fault.repaired_by is not None]
    if silent and not calling and scenario.expect.mechanism != "none":
        problems.add(
            f"{silent[0].path}.kind",
            f"no mechanism is promised to detect fault {silent[0].fault.id!r}: the job trains on with wrong values, "
            "and a pass means just that",
            text=silent[0].fault.kind,
            hint="write expect.mechanism: none if the scenario is to prove that",
        )


def _check_has_loss(draft: Draft, fault: Scheduled, problems: Problems) -> None:
    """Note ranks of a pipeline that have no loss to be changed."""
    valid = loss_ranks(draft.layout, draft.traits)
    if valid is None:
        return
    without = sorted(rank for rank in fault.fault.ranks if not valid[0] <= rank <= valid[1])
    if without:
        problems.add(
            f"{fault.path}.target",
            f"in a pipeline {named(without)} cannot have a loss to be changed: only that of "
            f"{named(range(valid[0], valid[1] + 1))} is valid",
            text=", ".join(map(str, without)),
            hint=f"target {named(range(valid[0], valid[1] + 1))}",
        )


def _check_place(draft: Draft, fault: Scheduled, problems: Problems) -> None:
    scenario, traits = draft.scenario, draft.traits
    what, path = what_of(fault.fault), fault.path
    trigger = fault.fault.trigger
    if what not in traits.alters:
        can = f"; what can be changed there: {', '.join(sorted(traits.alters))}" if traits.alters else ""
        problems.add(
            f"{path}.kind",
            f"in a job of kind {scenario.job.kind!r} nothing can change {with_article(what)}{can}",
            text=fault.fault.kind,
            hint=_places(traits),
        )
    elif what == "gradient" and draft.layout.shard == "full":
        problems.add(
            f"{path}.parameters.where" if "where" in fault.fault.parameters else f"{path}.kind",
            "with cluster.parallel.shard: full the gradients of whole weights are reduced inside fully_shard, where no "
            "hook sees them",
            text=fault.fault.kind,
            hint="write where: weight, or use the fault kind spike",
        )
    if not trigger.keys() <= {"step", "phase"}:
        message = f"fault {fault.fault.id!r} must come at one step, or it is not known what can still be compared"
        problems.add(f"{path}.trigger", message, text=", ".join(trigger), hint="write step and phase, nothing else")
        return
    if what in PLACES and trigger.get("phase") != PLACES[what]:
        problems.add(
            f"{path}.trigger",
            f"{with_article(what)} is changed at {PLACES[what]} of a step, not at {trigger.get('phase')}",
            text=str(trigger.get("phase")),
            hint=f"write phase: {PLACES[what]}",
        )
    if fault.moment.earliest.step < 2:
        problems.add(
            f"{path}.trigger.step",
            f"fault {fault.fault.id!r} comes in step 1, so no step before it can show that the job is the baseline's",
            text=1,
            hint="use a step from 2",
        )
    if scenario.baseline == "none":
        problems.add(
            f"{path}.kind",
            f"only the fault-free run shows the effect of fault {fault.fault.id!r}, but baseline is none "
            f"({problems.where('baseline')})",
            text=fault.fault.kind,
            hint="set baseline: auto",
        )
    if scenario.job.tre is not None:
        problems.add(
            "job.tre",
            f"whether fault {fault.fault.id!r} ({problems.where(path)}) drives the global norm over the threshold is "
            "not "
            "planned",
            hint="remove job.tre, or use the fault kind spike",
        )
    if "parameter" in fault.fault.parameters and what != "weight":
        message = f"parameter names a weight, but {with_article(what)} is changed: it is one flat array"
        problems.add(f"{path}.parameters.parameter", message, hint="leave it out, or write where: weight")


def _places(traits: JobTraits) -> str:
    """Return which corruption a job of this kind can have, as a hint."""
    places = [place for place in PLACES if place in traits.alters]
    if not places:
        return "use a job of kind plain, or torch"
    return f"use flip-bit with where: {' or '.join(places)}; kind plain has every corruption"


def _check_alone(fault: Scheduled, faults: Sequence[Scheduled], problems: Problems) -> None:
    """Refuse another recovery beside corrupted ranks: nobody knows whose state it would copy or save."""
    for other in faults:
        if other is not fault and not (other.effect.slows_at_most or other.effect.alters == "value"):
            problems.add(
                f"{other.path}.kind",
                f"after fault {fault.fault.id!r} ({problems.where(fault.path)}) the ranks of a replica group do not "
                f"hold the same weights; the outcome of fault {other.fault.id!r} is then not yet planned by this "
                "version",
                text=other.fault.kind,
                hint="remove one of the two, or flip a bit of a gradient",
            )
