"""The plan for faults of the storage: the places where they can be made."""

from __future__ import annotations

from chaos.plan.draft import Draft
from chaos.plan.family_rules import Rules
from chaos.plan.points import Point, point
from chaos.plan.problems import Problems
from chaos.scenario.models.scenario import Scenario


def check(draft: Draft, problems: Problems) -> None:
    """Note storage faults that this kind of job cannot have, or whose outcome is not known.

    A rank fails when its periodic checkpoint fails, which this version does not plan; so no periodic checkpoint may be
    due.
    """
    scenario, faults = draft.scenario, draft.faults
    lethal = [fault for fault in faults if fault.lethal and fault.moment.exact]
    last = min((fault.moment.earliest.last_complete for fault in lethal), default=scenario.job.steps)
    for fault in faults:
        how = fault.effect.spoils_saves
        if how is None:
            continue
        if draft.traits.storage is None:
            message = (
                f"a job of kind {scenario.job.kind!r} does not say where it saves, so {fault.fault.kind} cannot hit it"
            )
            problems.add(f"{fault.path}.kind", message, text=fault.fault.kind)
        due = _periodic(scenario, fault.moment.earliest, last)
        if due is not None and fault.handler is None:
            problems.add(
                f"{fault.path}.trigger",
                f"fault {fault.fault.id!r} comes before the periodic checkpoint of step {due} "
                f"({problems.where('job.checkpoint_interval')}), whose failure would end the ranks; that is not yet "
                "supported by this version",
                text=str(fault.moment.earliest),
                hint="make the fault behind the last periodic checkpoint, or take job.checkpoint_interval out",
            )
        if fault.handler == "rename" and how.leaves_names:
            message = f"fault {fault.fault.id!r} changes nothing at handler rename: renaming needs no room"
            problems.add(f"{fault.path}.trigger.handler", message, text="rename", hint="use handler save_ckpt")


def _periodic(scenario: Scenario, after: Point, last: int) -> int | None:
    """Return the first periodic checkpoint that is due after a point, up to the last step that is trained."""
    interval = scenario.job.checkpoint_interval
    if interval is None:
        return None
    steps = (step for step in range(1, last + 1) if step % interval == 0 or step == scenario.job.steps)
    return next((step for step in steps if point(step, "checkpoint.begin") >= after), None)


RULES = Rules(order=50, check=check)
