"""What becomes of the job under its faults: which mechanism acts, on which loss, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chaos.plan.constraints import CONTROLLER_RANK, Violation, loss_violations, nothing_left
from chaos.plan.describe import are_lost
from chaos.plan.mechanism import DOCUMENT, FOR_LOST_RANKS, SUPPORTED, acts_on_loss, switched_on
from chaos.plan.problems import Problems
from chaos.plan.schedule import Scheduled
from chaos.plan.steps import Loss, block_point, first_loss
from chaos.scenario.model import Scenario

_SUPPORTED = [mechanism for mechanism in FOR_LOST_RANKS if mechanism in SUPPORTED]

PROVE_NONE = "write expect.checkpoint: none if that is what the scenario wants to prove"


@dataclass(frozen=True)
class Outcome:
    """How the first attempt ends.

    ``mechanism`` as in the plan: a name, "none" when none can act, None when none has to. ``loss`` is set when ranks
    are lost, ``dead`` are those ranks. ``cause`` is the path of the scenario's key that the outcome follows from,
    ``why`` the mechanism's reason and ``stop`` the step's, each without its full stop. ``repair_steps`` as in the plan,
    with a reason for each in ``repairs``.
    """

    mechanism: str | None
    loss: Loss | None
    dead: tuple[int, ...]
    cause: str
    why: str
    stop: str = ""
    repair_steps: tuple[int, ...] = ()
    repairs: tuple[str, ...] = ()


def derive(
    scenario: Scenario, groups: Sequence[tuple[int, ...]], faults: Sequence[Scheduled], problems: Problems
) -> Outcome:
    """Derive the outcome of a schedule; what the vendor's constraints forbid is noted as a problem."""
    lethal = [fault for fault in faults if fault.lethal]
    if not lethal:
        what = "no fault takes a rank from the job" if faults else "the scenario injects no fault"
        return Outcome(None, None, (), "faults", f"{what}, so no mechanism has to act")
    loss = first_loss([fault.moment for fault in lethal], scenario.job.steps)
    dead = tuple(sorted({rank for fault in lethal for rank in fault.fault.ranks}))
    cause = _first(lethal, loss).path
    on = switched_on(scenario.job.protection)
    actor = acts_on_loss(on)
    lost = are_lost(dead)
    if actor is None:
        has = f"job.protection has only {', '.join(on)}" if on else "job.protection is empty"
        why = f"{lost} and {has}, so no mechanism can act and the job just ends{_counted(lethal)}"
        return Outcome("none", loss, dead, cause, why)
    if actor not in SUPPORTED:
        problems.add(
            "job.protection",
            f"{actor} would act when {lost} ({problems.where(cause)}), which is not yet supported by this version",
            text=actor,
            hint=f"take {actor} out of job.protection; supported for lost ranks: {', '.join(_SUPPORTED)}",
        )
        return Outcome("none", loss, dead, cause, "")
    late = nothing_left(loss, scenario.job.steps, cause)
    if late is not None:
        note(late, problems)
    silent = {rank for fault in lethal if fault.silences for rank in fault.fault.ranks}
    violations = loss_violations(
        scenario, groups, dead, silent, loss, cause=cause, controller_cause=_controller_cause(lethal, cause)
    )
    if violations and scenario.expect.checkpoint != "none":
        for violation in violations:
            note(violation, problems, PROVE_NONE)
    if violations:
        why = "; ".join(violation.message for violation in violations)
        return Outcome("none", loss, dead, cause, f"{why}{_counted(lethal)}")
    why = f"{lost}, and {actor} acts when a rank is lost ({DOCUMENT}): every replica group saves the last complete step"
    return Outcome(actor, loss, dead, cause, f"{why}{_counted(lethal)}", _stop(lethal, loss))


def check_reachable(faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note faults that can never be injected because an earlier one has already stopped the job or taken the rank."""
    lethal = [fault for fault in faults if fault.lethal]
    block = block_point([fault.moment for fault in lethal])
    first = min((fault for fault in lethal if fault.moment.exact), key=lambda f: f.moment.earliest, default=None)
    for fault in faults:
        if block is None or first is None or fault.moment.earliest <= block:
            continue
        problems.add(
            f"{fault.path}.trigger",
            f"fault {fault.fault.id!r} is never reached: after {first.fault.id!r} ({problems.where(first.path)}) at "
            f"{first.moment.earliest} every rank blocks in the all-reduce of step {block.step}",
            text=str(fault.moment.earliest),
            hint=f'use a point up to {block}, or "after: {first.fault.id}"',
        )
    _check_ranks_left(faults, problems)


def _check_ranks_left(faults: Sequence[Scheduled], problems: Problems) -> None:
    """A rank dies once, and a rank that is gone or stopped reaches no later barrier."""
    stops: dict[int, Scheduled] = {}
    for fault in faults:
        if fault.lethal and fault.moment.exact:
            for rank in fault.fault.ranks:
                if rank not in stops or fault.moment.earliest < stops[rank].moment.earliest:
                    stops[rank] = fault
    deaths: dict[int, Scheduled] = {}
    for fault in faults:
        for rank in fault.fault.ranks:
            other = deaths.setdefault(rank, fault) if _final(fault) else fault
            if other is fault and fault.moment.exact and rank in stops:
                stop = stops[rank]
                other = stop if stop.moment.earliest < fault.moment.earliest else fault
            if other is not fault:
                problems.add(
                    f"{fault.path}.target",
                    f"fault {fault.fault.id!r} cannot hit rank {rank}: fault {other.fault.id!r} "
                    f"({problems.where(other.path)}) takes that rank from the job, and it is lost only once",
                    text=f"rank {rank}",
                    hint="hit another rank, or leave one of the two faults out",
                )
                break


def _final(fault: Scheduled) -> bool:
    """Whether no other fault can hit its ranks later; a suspended rank can still be killed."""
    return fault.lethal and fault.effect != "suspension"


def _first(lethal: Sequence[Scheduled], loss: Loss) -> Scheduled:
    """The fault that stops the training; where that is open, the one that can come first."""
    candidates = lethal if loss.at is None else [fault for fault in lethal if fault.moment.exact]
    return min(candidates, key=lambda fault: fault.moment.earliest)


def _counted(lethal: Sequence[Scheduled]) -> str:
    """Why ranks with an error count as lost, to be put behind a reason."""
    effects = sorted({fault.effect for fault in lethal if fault.raised})
    if not effects:
        return ""
    return f". No mechanism that repairs a {' or a '.join(effects)} online is on, so a rank that reports one is lost"


def _controller_cause(lethal: Sequence[Scheduled], otherwise: str) -> str:
    """Path of the fault that takes the rank which may host the controller."""
    return next((fault.path for fault in lethal if fault.silences and CONTROLLER_RANK in fault.fault.ranks), otherwise)


def note(violation: Violation, problems: Problems, *more: str) -> None:
    """Note a violated constraint as a problem, with more hints than its own."""
    hint = "; ".join(part for part in (violation.hint, *more) if part)
    problems.add(violation.path, violation.message, text=violation.text, hint=hint)


def _stop(lethal: Sequence[Scheduled], loss: Loss) -> str:
    """Why this is the last complete step."""
    if loss.at is None:
        return (
            "the trigger leaves the step open: the checkpoint holds the last step that the saving rank trained, "
            f"one of {max(1, loss.lowest)} to {loss.highest}"
        )
    first = _first(lethal, loss)
    lost, point = are_lost(first.fault.ranks), loss.at
    if point.contributed:
        return (
            f"{lost} at {point}, behind the all-reduce: the others finish step {point.step} and block in "
            f"step {point.step + 1}, so step {point.step} is saved"
        )
    return (
        f"{lost} at {point}, before its gradients are in: the others block in the all-reduce of step "
        f"{point.step}, so step {point.step - 1} is saved"
    )
