"""The plan of a job of torchft without its lighthouse: no quorum is formed, and every group gives up in the end.

Source: torchft, Manager (0.2): ``start_quorum`` waits for the lighthouse for the quorum timeout, and raises
``TimeoutError``. Every step needs a quorum of its own.
"""

from __future__ import annotations

from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.response import Answer, Context

DOCUMENT = "torchft, Manager"

LEAVING = 30.0
"""Seconds from the error to the end of the process, at most. Seen: 2 to 5 s, in which the interpreter ends."""


def longest_end(timeout: float) -> float:
    """Return the seconds after the end of the lighthouse by which every group has ended."""
    # A group may have got its quorum just before, and train this step with its own timeout.
    return 2 * timeout + LEAVING


def without_lighthouse(context: Context, incident: Incident) -> Answer:
    """Return the end of the job: the groups stand still, and end by the managers' timeout."""
    scenario, cause = context.scenario, incident.first.path
    timeout = scenario.job.torchft.timeout
    if len(context.faults) > 1:
        context.problems.add(
            f"{cause}.target",
            "another fault beside the end of the lighthouse may find the groups before it or after it, which is not "
            "yet planned by this version",
            hint="write a scenario for each",
        )
    if longest_end(timeout) > scenario.deadlines.end:
        context.problems.add(
            f"{cause}.target",
            f"the groups may live on for {longest_end(timeout):g} s without the lighthouse (job.torchft.timeout), and "
            f"everything ends {scenario.deadlines.end:g} s after the fault at the latest (deadlines.end)",
            hint="write a shorter job.torchft.timeout, or a longer deadlines.end",
        )
    why = (
        "no quorum is formed without the lighthouse, and nothing starts it again; the groups stand still, and each "
        f"ends by an error of its own when {timeout:g} s have gone by (job.torchft.timeout; {DOCUMENT})"
    )
    return Answer(None, why, cause, ends=True, loss=context.loss(incident), ends_within=longest_end(timeout))
