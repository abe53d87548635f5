"""Pauses that can be requested: their landing, and the faults that may come beside them."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.problems import Problems
from chaos.plan.recovery.incident import during
from chaos.plan.recovery.mechanism import switched_on
from chaos.plan.recovery.vendor import DOCUMENT
from chaos.plan.schedule import Scheduled
from chaos.plan.traits import JobTraits
from chaos.scenario.errors import suggest
from chaos.scenario.models.scenario import Scenario

_PARAMETERS = ("seconds", "switch")

_LANDS_WITHIN = 3
"""Steps within which a pause has landed: the ranks go on while the controller agrees with them on the step."""

_STEPS_AFTER = 3
"""Steps that a job must have after the step in which a pause is requested: the ranks stop one or two steps later."""


def check_pauses(scenario: Scenario, faults: Sequence[Scheduled], traits: JobTraits, problems: Problems) -> None:
    """Note pauses that cannot be made or judged."""
    del traits
    pauses = [fault for fault in faults if fault.effect.pauses]
    on = switched_on(scenario.job.protection)
    for pause in pauses:
        _check_parameters(pause, problems)
        _check_target(pause, scenario.cluster.ranks, problems)
        if "TSP" not in on:
            problems.add(
                f"{pause.path}.kind",
                f"fault {pause.fault.id!r} pauses the training, but TSP is not on "
                f"({problems.where('job.protection')}): the ranks never ask whether they should pause ({DOCUMENT})",
                text=pause.fault.kind,
                hint="add TSP to job.protection",
            )
        if pause.handler is not None:
            problems.add(f"{pause.path}.trigger.handler", "a pause begins between two steps, not in a recovery")
        elif pause.moment.earliest.step >= scenario.job.steps:
            problems.add(
                f"{pause.path}.trigger",
                f"fault {pause.fault.id!r} is never reached: the job ends with step {scenario.job.steps}, and a pause "
                "lands after a step that is still to come",
                text=pause.moment.earliest.step,
                hint="pause earlier, or let the job train more steps",
            )
        elif pause.moment.earliest.step > scenario.job.steps - _STEPS_AFTER:
            problems.add(
                f"{pause.path}.trigger",
                f"fault {pause.fault.id!r} may leave no step to go on with: the ranks agree on a step that is still to "
                f"come, and the job ends with step {scenario.job.steps}",
                text=pause.moment.earliest.step,
                hint=f"pause at step {max(1, scenario.job.steps - _STEPS_AFTER)} or earlier, or let the job train more "
                "steps",
            )
    for pause in pauses:
        _check_others(pause, faults, problems)


def _check_parameters(pause: Scheduled, problems: Problems) -> None:
    parameters, path = pause.fault.parameters, f"{pause.path}.parameters"
    for name in parameters.keys() - set(_PARAMETERS):
        hint = suggest(name, _PARAMETERS) or f"it has: {', '.join(_PARAMETERS)}"
        problems.add(f"{path}.{name}", f"a pause has no parameter {name!r}", text=name, hint=hint)
    seconds = parameters.get("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= 600:
        problems.add(
            f"{path}.seconds" if "seconds" in parameters else pause.path,
            f"fault {pause.fault.id!r} does not say for how many seconds the training is paused",
            text="" if seconds is None else seconds,
            hint="write parameters: {seconds: 2}, a number above 0 and up to 600",
        )
    if not isinstance(parameters.get("switch", False), bool):
        hint = "write switch: true to use the backup network meanwhile"
        problems.add(f"{path}.switch", "switch is true or false", text=parameters["switch"], hint=hint)


def _check_target(pause: Scheduled, ranks: int, problems: Problems) -> None:
    if set(pause.fault.ranks) != set(range(ranks)):
        problems.add(
            f"{pause.path}.target",
            f"a pause stops all {ranks} ranks of the job, so they are its target",
            text=f"{len(pause.fault.ranks)} ranks",
            hint=f"write ranks: {list(range(ranks))}",
        )


def _check_others(pause: Scheduled, faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note faults near a pause: its step is open by a few, so other faults must keep away from it or wait for it."""
    inside = during(faults)[pause.fault.id]
    for fault in inside:
        if not fault.effect.silences:
            problems.add(
                f"{fault.path}.kind",
                f"fault {fault.fault.id!r} comes during the pause {pause.fault.id!r}, in which a rank can only be lost",
                text=fault.fault.kind,
                hint="kill or suspend a rank, or let the fault come after the pause",
            )
    first = pause.moment.earliest.step
    for fault in faults:
        at = fault.moment.earliest.step
        if fault is pause or fault in inside or not fault.moment.exact or not pause.moment.exact:
            continue
        if first <= at < first + _LANDS_WITHIN:
            problems.add(
                f"{fault.path}.trigger",
                f"fault {fault.fault.id!r} in step {at} may come before or after the pause {pause.fault.id!r} "
                f"({problems.where(pause.path)}), which is asked for in step {first}",
                text=at,
                hint=f"use a step from {first + _LANDS_WITHIN}, or wait for it with 'after: {pause.fault.id}'",
            )
