"""The comparisons left out of a verdict, and why: by the plan alone, never because evidence is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.evidence.baseline import NONE
from chaos.evidence.facts import ranks_text
from chaos.evidence.recovery_windows import rejoining
from chaos.faults.values.plan_corruption import stays
from chaos.plan.model import Plan
from chaos.plan.phases import phase_names

_FIRST = ((1, "step.begin"), (1, "forward"), (1, "allreduce.enter"))  # no set: a spoilt plan holds unhashable values


@dataclass(frozen=True)
class NotChecked:
    """A comparison that this run does not make. ``check`` is the check that it belongs to."""

    check: str
    what: str
    reason: str


def not_checked(plan: Plan) -> list[NotChecked]:
    """Return everything that the plan excludes. A reader of the result must see it: a pass does not cover it."""
    left: list[NotChecked] = []
    if plan.equivalence.baseline == NONE:
        reason = "baseline: none"
        left.append(NotChecked("checkpoint", "values against the fault-free run", reason))
        left.append(NotChecked("resume", "batches against the fault-free run", reason))
        left.append(NotChecked("loss", "losses, weights and optimizer state against the fault-free run", reason))
    comparable = plan.equivalence.comparable
    if plan.equivalence.baseline != NONE and comparable is not None:
        until, reason = comparable.until, comparable.why
        losses = f"losses after step {comparable.losses_until} against the fault-free run"
        left.append(NotChecked("loss", losses, reason))
        states = f"weights and optimizer state after step {until}" if until > 0 else "weights and optimizer state"
        left.append(NotChecked("loss", f"{states} against the fault-free run", reason))
    if plan.equivalence.baseline != NONE and not plan.equivalence.exact:
        left.extend(_within_tolerance(plan))
    if comparable is not None and rejoining(plan):
        what = "batches against the fault-free run, and samples that no rank has trained or that are trained twice"
        left.append(NotChecked("resume", what, comparable.why))
    for fault in plan.faults:
        if stays(fault):
            what = (
                f"{ranks_text(fault.ranks)} against the rest of its replica group from step {fault.trigger.get('step')}"
            )
            reason = f"fault {fault.id} changes a weight there, and no mechanism is promised to detect it"
            left.append(NotChecked("consistency", what, reason))
    if comparable is not None:
        limits = (("losses", comparable.finite_until), ("gradients", comparable.finite_gradients_until))
        for what, limit in limits:
            if limit is not None:
                left.append(NotChecked("loss", f"that {what} after step {limit} are finite", comparable.why))
    if trains_nothing(plan):
        reason = "the plan lets no rank finish a step"
        left.append(NotChecked("loss", "losses, gradients and weights", reason))
        left.append(NotChecked("consistency", "ranks of one replica group against each other", reason))
    if not plan.training.gradients:
        reason = "the reduction of the gradients is the framework's own in this kind of job, and no agent sees into it"
        left.append(NotChecked("loss", "gradients", reason))
    if plan.response.recoveries or plan.resume.resumes:
        what = "/dev/shm of the machine, locks of other programs, and averages of weights that callbacks keep"
        reason = "only the job's own directories, processes and parameters are looked at"
        left.append(NotChecked("hygiene", what, reason))
    if not phase_names(plan):
        left.append(NotChecked("recovery", "recovery time", _no_mechanism(plan)))
    return left


def _within_tolerance(plan: Plan) -> Iterator[NotChecked]:
    """Yield what a tolerance leaves open: a drift that the limits allow, and values that no sample holds."""
    what = "weights and optimizer state against the fault-free run"
    reason = "expect.loss has a tolerance: a parameter that differs is compared by its norm, its mean and some values"
    yield NotChecked("loss", "weights and optimizer state bit for bit against the fault-free run", reason)
    if plan.equivalence.loss_tolerance >= 1:
        reason = "expect.loss.tolerance is as large as the losses themselves"
        yield NotChecked("loss", "single losses against the fault-free run, but that they are finite", reason)
        if not plan.equivalence.state_tolerances:
            reason = "expect.loss.tolerance, which serves for them, is as large as the values themselves"
            yield NotChecked("loss", f"{what}, but that they are finite", reason)
    for limit in plan.equivalence.state_tolerances:
        for part, most in (("norm and mean", limit.norm), ("values", limit.sample)):
            if most is None or most >= 1:
                reason = "expect.loss.state has no limit for it"
                reason = reason if most is None else f"the limit {most:g} is as large as the values themselves"
                yield NotChecked("loss", f"{part} of {limit.pattern} against the fault-free run", reason)
    if plan.equivalence.mean_tolerance is not None and plan.equivalence.comparable is not None:
        reason = plan.equivalence.comparable.why
        yield NotChecked("loss", "the mean loss after the recovery against the fault-free run", reason)


def trains_nothing(plan: Plan) -> bool:
    """Return whether a fault keeps every rank from finishing the first step: it strikes before the all-reduce ends."""
    return plan.response.mechanism == "none" and any(
        fault.effect.stops_training
        and fault.trigger.keys() <= {"step", "phase"}
        and (fault.trigger.get("step"), fault.trigger.get("phase")) in _FIRST
        for fault in plan.faults
    )


def _no_mechanism(plan: Plan) -> str:
    mechanism = plan.response.mechanism
    if mechanism is None:
        return "the plan has no fault that a mechanism must answer"
    if mechanism == "none":
        return "the plan shows that no mechanism can act, and the job is not started again"
    return f"no phases for {mechanism}"
