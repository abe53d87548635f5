"""Refuses what a job that its own supervisor starts again (``job.supervised``) cannot be judged by."""

from __future__ import annotations

from chaos.plan.expectations import Expected
from chaos.plan.problems import Problems
from chaos.scenario.models.scenario import Scenario

_KEY = "job.supervised"


def check_supervised(scenario: Scenario, problems: Problems) -> None:
    """Note keys that contradict a supervisor, or of which nothing is known below one."""
    job = scenario.job
    if not job.supervised:
        return
    if job.protection:
        message = "a supervisor beside mechanisms is not planned by this version: which of the two acts is not known"
        problems.add(_KEY, message, text="true", hint="leave job.protection out")
    if job.resume_arguments:
        message = "the supervisor starts the ranks again, with arguments of its own"
        problems.add("job.resume_arguments", message, hint="leave them out")
    if scenario.cluster.nodes > 1:
        message = "a supervisor on each of several nodes is not planned by this version: each sees its own ranks only"
        problems.add(_KEY, message, text="true", hint="use nodes: 1")
    if not job.resume or scenario.expect.resume == "none":
        message = "the scenario says that the job just ends, and a supervisor starts it again"
        problems.add(_KEY, message, text="true", hint="leave one of the two out")


def supervised_reason(scenario: Scenario, expected: Expected, why: str, problems: Problems) -> str:
    """Return who starts the ranks again, for the plan; note a supervisor that has nothing to go on from."""
    if not scenario.job.supervised or not scenario.faults:
        return ""
    if not expected.resumes:
        problems.add(_KEY, f"the plan has no resume that could be judged: {why}", text="true")
        return ""
    return "the job's own supervisor starts the ranks again, in the same launch"
