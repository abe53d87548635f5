"""Ends of which it is not known what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence

from chaos.plan.describe import ranks
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import NEEDS, SAVING, switched_on
from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import Scenario

EXIT = "exit"
_MARKS = ("UCEError", "HCCEError", "SuspectRemoteError", "ForceStopError", "ARF FINISH", "STEP FINISH", "TREError")
"""By these MindSpore's wrapper tells errors apart (train/model.py of 2.10)."""


def check_own_ends(scenario: Scenario, faults: Sequence[Scheduled], problems: Problems) -> None:
    """Note an end with code 0 that nobody would notice, and an exception that MindSpore takes for another."""
    heartbeat = any(one in NEEDS["MindIO"] for one in switched_on(scenario.job.protection))
    for fault in faults:
        given = fault.fault.parameters
        if fault.fault.kind == EXIT and given.get("code") == 0 and (scenario.job.agent or not heartbeat):
            who = "the cluster's agent" if scenario.job.agent else "everybody"
            problems.add(
                f"{fault.path}.parameters.code",
                f"{ranks(fault.fault.ranks)} ends with 0, which {who} takes for the end of its training: the others "
                "wait for it in the next all-reduce until that gives up, and nothing can be judged",
                text=0,
                hint=f"use another code, or {SAVING} without job.agent, which notices the missing heartbeat",
            )
        text = given.get("text")
        if fault.effect == "unknown error" and isinstance(text, str) and (marks := [m for m in _MARKS if m in text]):
            problems.add(
                f"{fault.path}.parameters.text",
                f"MindSpore takes an error with {marks[0]!r} in its text for another one than it is",
                text=text,
                hint="write another text, or use the fault kind of that error",
            )
