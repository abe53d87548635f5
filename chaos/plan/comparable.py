"""How far a run can be compared with the fault-free one: the changes to its training, and what reverts each.

A changed value concerns the training of its step. Where a later recovery goes on from a state before it, the step is
trained again, and nothing changes it this time: from there on everything must again be as in the fault-free run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from chaos.plan.change import Change
from chaos.plan.describe import ranks
from chaos.plan.draft import Draft
from chaos.plan.family_rules import changes_of_families
from chaos.plan.parts.equivalence import Comparable
from chaos.plan.parts.fault import PlannedFault
from chaos.plan.parts.response import ENDING, Recovery
from chaos.plan.points import PHASE_ORDER, Point
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import PAUSING, REJOINING
from chaos.plan.schedule import Scheduled

_ALL_REDUCE = PHASE_ORDER.index("allreduce.enter")


@dataclass(frozen=True)
class Resumed:
    """The new start of the job: after ``step``, None where the step is open. ``again``: whether there is one."""

    again: bool
    step: int | None


@dataclass(frozen=True)
class Judged:
    """The plan's faults and recoveries with their effect on the comparison, and its extent (None: the whole run)."""

    faults: tuple[PlannedFault, ...]
    recoveries: tuple[Recovery, ...]
    comparable: Comparable | None


@dataclass(frozen=True)
class _Fate:
    """The outcome of a change in the launch. ``wrong``: its training is still wrong when the launch ends.

    The change is made before recovery number ``made``; ``back`` is the number of the recovery that reverts it, None
    where none does.
    """

    wrong: bool
    made: int
    back: int | None = None


def plan_comparable(draft: Draft, recoveries: Sequence[Recovery], resumed: Resumed, problems: Problems) -> Judged:
    """Work out how far the run can be compared.

    Notes changes that a recovery may or may not revert, depending on timing, and flipped bits that nobody could tell
    from an earlier change.
    """
    faults = draft.faults
    known = {fault.fault.id: fault for fault in faults}
    wrong_after: list[set[str]] = [set() for _ in recoveries]
    left: list[Comparable] = []
    back: set[str] = set()
    changes = sorted(changes_of_families(draft, recoveries), key=lambda change: change.point)
    fates = [_follow(change, known, draft.groups, recoveries, wrong_after, problems) for change in changes]
    for change, fate in zip(changes, fates, strict=True):
        if fate.wrong and not (resumed.again and _goes_back(change, resumed.step, problems)):
            left.append(change.limit)
        else:
            back.add(change.name)
    _check_felt(changes, fates, problems)
    _check_ended(changes, faults, problems)
    left.extend(_with_fewer(recoveries))
    return Judged(
        tuple(replace(fault.fault, taken_back=fault.fault.id in back) for fault in faults),
        tuple(
            replace(recovery, as_fault_free=not wrong) for recovery, wrong in zip(recoveries, wrong_after, strict=True)
        ),
        _least(left),
    )


def _with_fewer(recoveries: Sequence[Recovery]) -> Iterator[Comparable]:
    """Yield how far the run can be compared where ranks train on without the lost ones."""
    for recovery in recoveries:
        if recovery.succeeds and recovery.mechanism in REJOINING and recovery.step is not None:
            why = (
                f"with {recovery.mechanism} the others train on without {ranks(recovery.copied)}, whose samples are "
                "dropped until they are back, so the training is another one"
            )
            yield Comparable(recovery.step, recovery.step, why)


def _follow(
    change: Change,
    known: Mapping[str, Scheduled],
    groups: Sequence[tuple[int, ...]],
    recoveries: Sequence[Recovery],
    wrong_after: list[set[str]],
    problems: Problems,
) -> _Fate:
    """Return the outcome of a change.

    ``wrong_after`` gets its name for each recovery that goes on from a wrong state.
    """
    made = wrong = False
    first, back, name = len(recoveries), None, change.name
    for number, recovery in enumerate(recoveries):
        if not recovery.succeeds or recovery.mechanism in (*ENDING, *PAUSING):
            continue
        if name in recovery.faults:
            if change.lasting:
                wrong_after[number].add(name)
            made, wrong, first = True, True, min(first, number)  # the changes left to limit are made in the replay
            continue
        if not made:
            causes = [known[fault] for fault in recovery.faults if fault in known]
            made = wrong = _is_made_before(change, causes, groups, problems)
            first = number if made else first
        if wrong and _goes_back(change, recovery.step, problems):
            wrong, back = False, number
        if wrong:
            wrong_after[number].add(name)
    return _Fate(wrong or not made, first, back)


def _goes_back(change: Change, step: int | None, problems: Problems) -> bool:
    """Return whether training that goes on after ``step`` trains the changed step again, or never had the change."""
    if step is None:
        _refuse_open(change, problems)
        return False
    return not change.lasting and step <= change.limit.until


def _is_made_before(
    change: Change, causes: Sequence[Scheduled], groups: Sequence[tuple[int, ...]], problems: Problems
) -> bool:
    """Return whether the change is made before, and not after, the recovery from the faults ``causes``."""
    exact = [fault for fault in causes if fault.moment.exact and fault.handler is None]
    if not exact:
        _refuse_open(change, problems)
        return False
    first = min(exact, key=lambda fault: fault.moment.earliest)
    at, step = first.moment.earliest, change.point.step
    hit = {rank for fault in exact if fault.moment.earliest == at for rank in fault.fault.ranks}
    met = {rank for members in groups if hit.intersection(members) for rank in members}
    # The ranks of a replica group meet in the step's all-reduce; ranks of other groups are a step apart at most.
    if at >= Point(step + 1, _ALL_REDUCE) or (
        at > Point(step, _ALL_REDUCE) and met.issuperset(change.fault.fault.ranks)
    ):
        return True
    if change.point > at.block:
        return False
    problems.add(
        f"{change.fault.path}.trigger",
        f"fault {change.name!r} at {change.point} may be made before the recovery from fault {first.fault.id!r} "
        f"({problems.where(first.path)}) at {at} or after it, so it is not known whether the recovery undoes it",
        text=str(change.point),
        hint=f"use a step before {at.step - 1 or 1}, or one behind {at.block.step}",
    )
    return False


def _refuse_open(change: Change, problems: Problems) -> None:
    name, step = change.name, change.point.step
    problems.add(
        f"{change.fault.path}.trigger",
        f"after which step training goes on is left open, so it is not known whether step {step}, which fault "
        f"{name!r} changes, is trained again, and nothing after it could be compared",
        text=str(step),
        hint="give every fault that takes ranks a step as its trigger",
    )


def _check_felt(changes: Sequence[Change], fates: Sequence[_Fate], problems: Problems) -> None:
    """Note a flipped bit that only a different state could show, where the state differs from the baseline already."""
    for number, (later, fate) in enumerate(zip(changes, fates, strict=True)):
        if not later.shown_by_state:
            continue
        still = [
            earlier
            for earlier, its in zip(changes[:number], fates[:number], strict=True)
            if its.back is None or its.back >= fate.made
        ]
        if still:
            problems.add(
                f"{later.fault.path}.kind",
                f"the effect of fault {later.name!r} shows only as a state that differs from the fault-free run's, "
                f"but the state already differs because of fault {still[0].name!r} "
                f"({problems.where(still[0].fault.path)})",
                text=later.fault.fault.kind,
                hint=f"write a scenario for each: nothing else shows {later.shown_by_state}",
            )


def _check_ended(changes: Sequence[Change], faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note a corruption of a step that its ranks may never end: then nothing shows its result."""
    for change in changes:
        if not change.silent:
            continue
        for other in faults:
            stops = (other.lethal or other.raised) and other.handler is None and other.moment.exact
            if stops and other.moment.earliest.step == change.point.step:
                problems.add(
                    f"{change.fault.path}.trigger",
                    f"fault {other.fault.id!r} ({problems.where(other.path)}) stops the training in step "
                    f"{change.point.step} too, so the effect of fault {change.name!r} is never seen",
                    text=str(change.point.step),
                    hint="move one of the two to another step",
                )
                break


def _least(limits: Sequence[Comparable]) -> Comparable | None:
    """Return the limit that all of them leave."""
    if not limits:
        return None
    first = min(limits, key=lambda limit: limit.until)
    finite = [limit.finite_until for limit in limits if limit.finite_until is not None]
    gradients = [limit.finite_gradients_until for limit in limits if limit.finite_gradients_until is not None]
    return replace(
        first,
        losses_until=min(limit.losses_until for limit in limits),
        finite_until=min(finite, default=None),
        finite_gradients_until=min(gradients, default=None),
    )
