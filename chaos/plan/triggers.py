"""Reads triggers: whether each can ever fire, and at which moment."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

from chaos.plan.points import PHASE_ORDER, START, Moment, point, when_all, when_any
from chaos.plan.problems import Problems
from chaos.scenario.models.fault import Trigger
from chaos.scenario.models.scenario import Scenario


def read_moments(
    scenario: Scenario, ids: Sequence[str], observable: frozenset[str], problems: Problems
) -> tuple[Moment | None, ...]:
    """Return the moment of every fault, None for a trigger that can never fire; note its problem.

    Args:
        scenario: the scenario.
        ids: ids of its faults, in order.
        observable: the phases that the job can report.
        problems: collects every problem.
    """
    triggers = [fault.trigger for fault in scenario.faults]
    sound = [_sound(trigger, _path(index), scenario, observable, problems) for index, trigger in enumerate(triggers)]
    moments = _settle(triggers, ids, sound)
    for index, moment in enumerate(moments):
        if moment is None and all(sound):
            message = f"fault {ids[index]!r} never comes: it waits for a fault that never lands"
            problems.add(_path(index), message, text=ids[index], hint="let it wait for something that comes")
    return tuple(moments)


def _path(index: int) -> str:
    return f"faults.{index}.trigger"


def parts(trigger: Trigger, path: str) -> Iterator[tuple[str, Trigger]]:
    """Yield a trigger and the triggers inside it, with their paths in the scenario."""
    yield path, trigger
    for key, inner in (("all", trigger.all), ("any", trigger.any)):
        for index, part in enumerate(inner or ()):
            yield from parts(part, f"{path}.{key}.{index}")


def _settle(triggers: Sequence[Trigger], ids: Sequence[str], sound: Sequence[bool]) -> list[Moment | None]:
    """Return the moments of faults that may wait for each other.

    Every fault starts without a moment. It is read again whenever a fault that it waits for has got one, so a ring
    through ``any`` settles too: there the alternative outside the ring decides.
    """
    waiting: dict[str, list[int]] = defaultdict(list)
    for index, trigger in enumerate(triggers):
        for _, part in parts(trigger, ""):
            for other in (part.after, part.healed):
                if other is not None:
                    waiting[other].append(index)
    moments: list[Moment | None] = [None] * len(triggers)
    landed: dict[str, Moment] = {}
    queue = deque(index for index in range(len(triggers)) if sound[index])
    while queue:
        index = queue.popleft()
        moment = _moment(triggers[index], landed)
        if moment is None or moment == moments[index]:
            continue
        moments[index] = landed[ids[index]] = moment
        queue.extend(other for other in waiting[ids[index]] if sound[other])
    return moments


def _moment(trigger: Trigger, landed: Mapping[str, Moment]) -> Moment | None:
    """Return the moment of a trigger, given the faults known to land; None if it does not fire with these alone."""
    conditions: list[Moment | None] = []
    if trigger.step is not None:
        conditions.append(Moment(point(trigger.step, trigger.phase), exact=True))
    if trigger.elapsed is not None or trigger.log is not None or trigger.handler is not None:
        conditions.append(Moment(START, exact=False))
    for name in (trigger.after, trigger.healed):
        if name is not None:
            # Not before the other fault. How long after is open: no barrier holds the ranks meanwhile.
            other = landed.get(name)
            conditions.append(other and Moment(other.earliest, exact=False))
    conditions.extend(_moment(part, landed) for part in trigger.all or ())
    if trigger.any is not None:
        alternatives = [moment for part in trigger.any if (moment := _moment(part, landed)) is not None]
        conditions.append(when_any(alternatives) if alternatives else None)
    known = [moment for moment in conditions if moment is not None]
    return when_all(known) if known and len(known) == len(conditions) else None


def _sound(trigger: Trigger, path: str, scenario: Scenario, observable: frozenset[str], problems: Problems) -> bool:
    """Return whether every barrier in a trigger comes; note all that do not, not only the first."""
    checked = [_barrier_comes(part, at, scenario, observable, problems) for at, part in parts(trigger, path)]
    return all(checked)


def _barrier_comes(
    trigger: Trigger, path: str, scenario: Scenario, observable: frozenset[str], problems: Problems
) -> bool:
    """Return whether the job reports the barrier that a trigger names; note it if not."""
    job, step = scenario.job, trigger.step
    if step is None:
        return True
    name = PHASE_ORDER[point(step, trigger.phase).phase]
    key = f"{path}.{'phase' if trigger.phase else 'step'}"
    if name not in observable:
        phases = ", ".join(known for known in PHASE_ORDER if known in observable) or "none"
        how = "" if job.loading == "path" else ", with its agent as a callback,"
        message = f"a job of kind {job.kind!r}{how} cannot observe phase {name}"
        problems.add(key, message, text=name, hint=f"it observes: {phases}")
        return False
    if step > job.steps:
        message = f"step {step} never comes: the job trains {job.steps} steps ({problems.where('job.steps')})"
        problems.add(f"{path}.step", message, text=step, hint=f"use a step from 1 to {job.steps}")
        return False
    saving = (
        name.startswith("checkpoint.") and name != "checkpoint.load"
    )  # the mechanism that goes back to a checkpoint knows when it is loaded
    if saving and not _saves_at(step, job.steps, job.checkpoint_interval):
        interval = job.checkpoint_interval
        saved = "no periodic checkpoint" if interval is None else f"one every {interval} steps"
        where = problems.where("job.checkpoint_interval")
        hint = "choose a step at which a checkpoint is saved, or set job.checkpoint_interval"
        problems.add(key, f"{name} never comes at step {step}: the job saves {saved} ({where})", text=name, hint=hint)
        return False
    return True


def _saves_at(step: int, last_step: int, interval: int | None) -> bool:
    """Return whether a periodic checkpoint is saved after a step.

    MindSpore saves one more at the end of training.
    """
    return interval is not None and (step % interval == 0 or step == last_step)
