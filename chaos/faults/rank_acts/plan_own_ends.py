"""Ends of ranks whose outcome is not known."""

from __future__ import annotations

from chaos.plan.describe import ranks
from chaos.plan.draft import Draft
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import BY_SURVIVORS, NEEDS, SAVING, switched_on

EXIT = "exit"


def check_own_ends(draft: Draft, problems: Problems) -> None:
    """Note an end with code 0 that nobody would notice."""
    scenario = draft.scenario
    on = switched_on(scenario.job.protection)
    heartbeat = any(mechanism in NEEDS["MindIO"] for mechanism in on)
    if not BY_SURVIVORS.isdisjoint(on):
        return
    for fault in draft.faults:
        parameters = fault.fault.parameters
        if fault.fault.kind == EXIT and parameters.get("code") == 0 and (scenario.job.agent or not heartbeat):
            who = "the cluster's agent" if scenario.job.agent else "everybody"
            problems.add(
                f"{fault.path}.parameters.code",
                f"{ranks(fault.fault.ranks)} ends with 0, which {who} takes for the end of its training: the others "
                "wait in the next all-reduce until it times out, and nothing can be judged",
                text=0,
                hint=f"use another code, or {SAVING} without job.agent, which notices the missing heartbeat",
            )
