"""Refuses arguments of a resume that never comes: a reader would believe that the resume was tried."""

from __future__ import annotations

from chaos.plan.checkpoints.resume_key import ARGUMENTS, INTERVAL
from chaos.plan.draft import Draft
from chaos.plan.expectations import Expected
from chaos.plan.parts.resume import PlannedRestore
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import SAVING, switched_on
from chaos.plan.recovery.outcome import Outcome
from chaos.scenario.models.scenario import Scenario


def check_resume_arguments(scenario: Scenario, problems: Problems) -> None:
    """Note arguments of a resume that no fault can bring about: it is ruled out, or there is nothing to go on from."""
    job = scenario.job
    if not job.resume_arguments:
        return
    if not job.resume:
        _refuse(f"job.resume is false ({problems.where('job.resume')})", "leave one of the two out", problems)
    elif scenario.expect.resume == "none":
        _refuse(f"expect.resume says none ({problems.where('expect.resume')})", "leave one of the two out", problems)
    elif job.checkpoint_interval is None and SAVING.isdisjoint(switched_on(job.protection)):
        hint = f"say every how many steps the script saves: {INTERVAL}"
        _refuse("the scenario names no checkpoint to go on from", hint, problems)


def unused_arguments(
    draft: Draft,
    outcome: Outcome,
    expected: Expected,
    restore: PlannedRestore | None,
    restored: str,
    problems: Problems,
) -> str:
    """Return that the arguments of a resume are not used, where they are not; note it as a problem where it is one.

    A job that ends has to be resumed. Where no fault ends the job, another cell or another value of a variable may end
    it. Without faults the scenario is tried out, or serves as the baseline. ``restored`` is what the plan says about
    the periodic checkpoints.
    """
    scenario = draft.scenario
    if not scenario.job.resume_arguments or expected.resumes or restore is not None:
        return ""
    if outcome.loss is not None:
        hint = "let the faults come behind the first checkpoint, or set job.resume: false in its place"
        _refuse(restored or outcome.why, hint, problems)
    elif draft.faults and not (scenario.matrix or scenario.variables):
        _refuse(outcome.why, "leave them out", problems)
    return f"the job is not started again, so {ARGUMENTS} are not used"


def _refuse(why: str, hint: str, problems: Problems) -> None:
    problems.add(ARGUMENTS, f"{ARGUMENTS} are never used: {why}", hint=hint)
