"""The fate of the job under its faults: which mechanisms act, one after another, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from chaos.plan.parts.response import Recovery
from chaos.plan.problems import Problems
from chaos.plan.recovery.incident import Incident, check_apart, incidents
from chaos.plan.recovery.mechanism import switched_on
from chaos.plan.recovery.registry import in_order
from chaos.plan.recovery.response import Answer, Context
from chaos.plan.recovery.steps import Loss
from chaos.plan.recovery.vendor import MINDSPORE, Vendor
from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import Scenario


@dataclass(frozen=True)
class Outcome:
    """How the first launch goes.

    ``mechanism`` as in the plan: the last one that succeeds, "none" when none can act, None when none has to. ``loss``
    is set when ranks are lost for good; ``dead`` are the lost ranks. ``cause`` is the path of the scenario's key that
    the outcome follows from, ``why`` the deciding mechanism's reason and ``stop`` that for its step; ``reasons`` holds
    all of them in order, each without its full stop. ``ends_within`` are the seconds by which the job has ended, where
    a mechanism promises its end.
    """

    mechanism: str | None
    loss: Loss | None
    dead: tuple[int, ...]
    cause: str
    why: str
    stop: str = ""
    recoveries: tuple[Recovery, ...] = ()
    reasons: tuple[str, ...] = ()
    ends_within: float | None = None

    @property
    def goes_on(self) -> bool:
        """Whether training goes on within the launch, to its end."""
        return bool(self.recoveries) and self.loss is None and self.mechanism not in (None, "none")


def derive(
    scenario: Scenario,
    groups: Sequence[tuple[int, ...]],
    faults: Sequence[Scheduled],
    problems: Problems,
    vendor: Vendor = MINDSPORE,
) -> Outcome:
    """Derive the outcome of a schedule; note each violation of the vendor's constraints as a problem."""
    known_incidents = incidents(faults)
    check_apart(known_incidents, problems)
    _check_inside(faults, known_incidents, problems)
    problems.raise_found()
    if not known_incidents:
        what = "no fault takes a rank from the job" if faults else "the scenario injects no fault"
        why = f"{what}, so no mechanism has to act"
        return Outcome(None, None, (), "faults", why, reasons=(why,))
    context = Context(scenario, groups, switched_on(scenario.job.protection), problems, faults=faults, vendor=vendor)
    answers: list[Answer] = []
    for index, incident in enumerate(known_incidents):
        done = tuple(answer.recovery for answer in answers if answer.recovery is not None and answer.recovery.succeeds)
        left = _answer(replace(context, before=done), incident, answers)
        _check_used(left, problems)
        if answers[-1].ends:
            _check_reached(incident, [*known_incidents[index + 1 :], *_harmless(faults, incident)], problems)
            break
    return _outcome(answers)


def _answer(context: Context, incident: Incident, answers: list[Answer]) -> Incident:
    """Ask the mechanisms in their order, until one succeeds or none is left; return the rest of the incident."""
    for mechanism in in_order():
        answer = mechanism.answer(context, incident)
        if answer is None:
            continue
        answers.append(answer)
        incident = answer.left or incident
        if answer.ends or (answer.recovery is not None and answer.recovery.succeeds):
            return incident
    raise AssertionError("the last mechanism always answers")


def _outcome(answers: Sequence[Answer]) -> Outcome:
    last = answers[-1]
    recoveries = tuple(answer.recovery for answer in answers if answer.recovery is not None)
    succeeded = last.recovery is not None and last.recovery.succeeds
    reasons = [reason for answer in answers for reason in (answer.why, answer.how) if reason]
    return Outcome(
        last.recovery.mechanism if succeeded and last.recovery is not None else "none",
        last.loss,
        last.dead,
        last.cause,
        last.why,
        last.how,
        recoveries,
        tuple(dict.fromkeys(reasons)),
        last.ends_within,
    )


def _check_inside(faults: Sequence[Scheduled], known_incidents: Sequence[Incident], problems: Problems) -> None:
    """Note faults at a handler outside a recovery: a handler is called only in a recovery.

    A fault may be made only in the recovery for which it waits at exactly this handler.
    """
    for fault in faults:
        if fault.handler is not None and not (fault.lethal or fault.raised or _spoils_save(fault)):
            problems.add(
                f"{fault.path}.kind",
                f"fault {fault.fault.id!r} does not make handler {fault.handler} fail, and any other outcome is not "
                "yet planned by this version",
                text=fault.fault.kind,
                hint="use a kind that takes its rank or raises an error, or one of the storage at handler save_ckpt",
            )
        if fault.handler is not None and not known_incidents:
            problems.add(
                f"{fault.path}.trigger.handler",
                f"fault {fault.fault.id!r} is never reached: no other fault calls for a recovery, so the SDK calls no "
                "handler",
                text=fault.handler,
                hint="add the fault that the recovery answers",
            )
        elif fault.handler is not None and fault.fault.trigger.get("any"):
            problems.add(
                f"{fault.path}.trigger.any",
                f"fault {fault.fault.id!r} may or may not come inside a recovery, so nothing can be judged",
                hint="give the handler alone, or with 'after'",
            )


def _spoils_save(fault: Scheduled) -> bool:
    return fault.effect.spoils_saves is not None and fault.handler in ("save_ckpt", "rename")


def _check_used(left: Incident, problems: Problems) -> None:
    """Note faults at handlers that no mechanism calls, or only behind one at which the recovery has failed."""
    broke = next((fault.handler for fault in reversed(left.spoilt) if fault.handler is not None), None)
    failed = "" if broke is None else f", once {left.failed[-1]} has failed at handler {broke},"
    for fault in left.inside:
        problems.add(
            f"{fault.path}.trigger.handler",
            f"fault {fault.fault.id!r} is never reached: no mechanism that answers fault {left.first.fault.id!r} "
            f"({problems.where(left.first.path)}){failed} calls handler {fault.handler}",
            text=fault.handler or "",
            hint="use a handler of the mechanism that acts, or name the fault of the recovery with 'after'",
        )


def _check_reached(ending: Incident, rest: Sequence[Incident], problems: Problems) -> None:
    """Note faults that can never be injected, because the job has ended or every rank is blocked."""
    first = ending.first
    block = first.moment.earliest.block
    for fault in (fault for incident in rest for fault in incident.faults):
        problems.add(
            f"{fault.path}.trigger",
            f"fault {fault.fault.id!r} is never reached: after {first.fault.id!r} ({problems.where(first.path)}) at "
            f"{first.moment.earliest} every rank blocks in the all-reduce of step {block.step}",
            text=str(fault.moment.earliest),
            hint=f'use a point up to {block}, or "after: {first.fault.id}"',
        )


def _harmless(faults: Sequence[Scheduled], ending: Incident) -> list[Incident]:
    """Return faults that nothing has to answer, and that would come after the incident that ends the job."""
    if not ending.first.moment.exact:
        return []
    block = ending.first.moment.earliest.block
    return [
        Incident((fault,))
        for fault in faults
        if not (fault.lethal or fault.raised) and fault.handler is None and fault.moment.earliest > block
    ]


def check_reachable(faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note faults that can never hit their rank, because an earlier one of the same incident has taken it."""
    for incident in incidents(faults):
        _check_ranks_left([fault for fault in (*incident.faults, *incident.inside) if fault.lethal], problems)


def _check_ranks_left(lethal: Sequence[Scheduled], problems: Problems) -> None:
    """Note faults on ranks that are already lost.

    A rank dies once, and a rank that is gone or stopped reaches no later barrier.
    """
    stops: dict[int, Scheduled] = {}
    for fault in lethal:
        if fault.moment.exact:
            for rank in fault.fault.ranks:
                if rank not in stops or fault.moment.earliest < stops[rank].moment.earliest:
                    stops[rank] = fault
    deaths: dict[int, Scheduled] = {}
    for fault in lethal:
        for rank in fault.fault.ranks:
            other = deaths.setdefault(rank, fault) if _final(fault) else _ended_just_before(deaths.get(rank), fault)
            if other is fault and fault.moment.exact and rank in stops:
                stop = stops[rank]
                other = stop if stop.moment.earliest < fault.moment.earliest else fault
            if other is not fault:
                problems.add(
                    f"{fault.path}.target",
                    f"fault {fault.fault.id!r} cannot hit rank {rank}: fault {other.fault.id!r} "
                    f"({problems.where(other.path)}) takes that rank from the job, and it is lost only once",
                    text=f"rank {rank}",
                    hint="hit another rank, or remove one of the two faults",
                )
                break


def _ended_just_before(death: Scheduled | None, fault: Scheduled) -> Scheduled:
    """Return the death of a rank that is suspended at the same barrier, where the scenario names the death first."""
    if death is None or not (death.moment.exact and fault.moment.exact):
        return fault
    return death if death.moment.earliest == fault.moment.earliest else fault


def _final(fault: Scheduled) -> bool:
    """Return whether no other fault can hit its ranks later; a suspended rank can still be killed."""
    return fault.lethal and not fault.effect.suspends
