"""RSC: pod-level rescheduling. The cluster's agent kills all ranks and starts them again, without the launcher exiting.

The job goes on from its last periodic checkpoint, as its own script finds it; steps since then are trained again.
"""

from __future__ import annotations

from chaos.mechanisms.all_ranks_plan import Restarter, refuse_others, restarted
from chaos.plan.recovery.incident import Incident
from chaos.plan.recovery.response import Answer, Context, note
from chaos.plan.recovery.vendor import DOCUMENT
from chaos.plan.rules.constraints import Violation
from chaos.scenario.models.scenario import Scenario

_RESTARTER = Restarter(name="RSC", actor="the cluster's agent", short="the agent", ends="kills", source=DOCUMENT)


def answer(context: Context, incident: Incident) -> Answer | None:
    """Return a restart of all ranks; None where RSC is off. Past the limit of restarts, the agent ends the job."""
    if _RESTARTER.name not in context.on:
        return None
    alone = _no_agent(context.scenario)
    if alone is not None:
        note(alone, context.problems)
    refuse_others(context, _RESTARTER)
    if any(fault.effect.suspends for fault in incident.faults):
        context.problems.add(
            f"{incident.first.path}.kind",
            "a suspended process still runs for the cluster's agent, so RSC alone never notices it and the job hangs",
            hint="kill the rank, or switch on a mechanism that watches heartbeats",
        )
    return restarted(context, incident, _RESTARTER)


def _no_agent(scenario: Scenario) -> Violation | None:
    """Return the lack of a cluster's agent: RSC only hands the processes over, and the agent must take them."""
    if scenario.job.agent:
        return None
    return Violation(
        "job.protection",
        f"RSC needs a cluster agent, which starts the ranks again ({DOCUMENT}, environment variables: it only hands "
        "the processes over to a third-party component), and job.agent is false",
        text="RSC",
        hint="set job.agent: true",
    )
