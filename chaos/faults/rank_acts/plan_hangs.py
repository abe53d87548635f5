"""Ranks that hang: who notices, and how long a rank may come late before somebody does.

A thread that waits for ever leaves its process alive and its connections open, and the SDK's heartbeat is another
thread. So only the collective's timeout (HCCL_EXEC_TIMEOUT) finds the hang, on the ranks that wait for it.
"""

from __future__ import annotations

from chaos.plan.draft import Draft
from chaos.plan.family_rules import Occurrence
from chaos.plan.job_effect import NONE, JobEffect
from chaos.plan.problems import Problems
from chaos.plan.recovery.mechanism import NEEDS, RESTARTING, switched_on
from chaos.plan.schedule import Scheduled
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario

SLOW = "slow-rank"
"""The kind that makes each step of a rank longer."""

SECONDS = "seconds"
"""The parameter after which a rank goes on by itself."""

HOLDS_LOCK = "hold-gil"
"""The kind that keeps every Python thread in the process from running, a heartbeat's too."""

DELAYS = ("hang", HOLDS_LOCK, "data-stall")
"""Kinds by which a rank comes late by ``seconds``."""

PATIENCE = 20.0
"""Seconds that a rank may come late where the scenario has no timeout of its own.

MindSpore's collectives on a CPU give up after 30 (MS_CPU_COMM_OP_TIMEOUT).
"""


def settle_hang(effect: JobEffect, occurrence: Occurrence, problems: Problems) -> JobEffect:
    """Return no effect for a hang that ends by itself; other faults keep their effect."""
    del problems
    return NONE if effect.hangs and SECONDS in occurrence.fault.parameters else effect


def check_hangs(draft: Draft, problems: Problems) -> None:
    """Note hangs that nothing says when, or by whom, they are noticed, and delays that somebody would notice."""
    scenario = draft.scenario
    for fault in draft.faults:
        if fault.effect.hangs:
            _check_for_ever(scenario, fault, draft.traits, problems)
        elif fault.fault.kind in DELAYS:
            _check_delay(scenario, fault, problems)
        if fault.fault.kind == HOLDS_LOCK:
            _check_heartbeat(scenario, fault, problems)


def check_slowness(draft: Draft, problems: Problems) -> None:
    """Note ranks that are to be slow for more steps than are left."""
    job = draft.scenario.job
    for fault in draft.faults:
        steps = fault.fault.parameters.get("steps", 1)
        left = job.steps - fault.moment.earliest.step
        if fault.fault.kind == SLOW and isinstance(steps, int) and steps > left:
            problems.add(
                f"{fault.path}.parameters.steps" if "steps" in fault.fault.parameters else f"{fault.path}.trigger.step",
                f"fault {fault.fault.id!r} slows {steps} steps down from step {fault.moment.earliest.step} on, and "
                "behind "
                f"them there must be one that shows the others waiting: the job trains {job.steps}",
                text=steps,
                hint="slow fewer steps down, or begin earlier",
            )


def _check_for_ever(scenario: Scenario, fault: Scheduled, traits: JobTraits, problems: Problems) -> None:
    if scenario.job.hccl is None and not traits.genuine:
        problems.add(
            f"{fault.path}.kind",
            f"without job.hccl the timeout of the ranks that wait for {fault.fault.id!r} is unknown",
            text=fault.fault.kind,
            hint="write job.hccl, for example hccl: {watchdog: false, time_scale: 0.01}",
        )
    others = [mechanism for mechanism in switched_on(scenario.job.protection) if mechanism not in RESTARTING]
    if others:
        problems.add(
            "job.protection",
            f"with {', '.join(others)} the outcome of a hanging rank depends on the order in which the others give up "
            f"({problems.where(fault.path)}): its heartbeat goes on, and if all others report an error at once, no "
            "rank is left to save",
            text=others[0],
            hint=f"switch {RESTARTING} on alone, or give the hang seconds after which it ends",
        )


def _check_delay(scenario: Scenario, fault: Scheduled, problems: Problems) -> None:
    seconds = fault.fault.parameters.get(SECONDS)
    limit, what = _patience(scenario)
    if isinstance(seconds, (int, float)) and seconds > limit:
        problems.add(
            f"{fault.path}.parameters.{SECONDS}",
            f"a rank that comes {seconds:g} s late may be given up by the others; {limit:g} s is the limit ({what})",
            text=seconds,
            hint="make it shorter, or leave seconds out where the job is to find a rank that hangs",
        )


def _patience(scenario: Scenario) -> tuple[float, str]:
    """Return the seconds by which a rank may come late, and why no more."""
    hccl, group = scenario.job.hccl, scenario.job.torchrun.group_timeout
    if hccl is not None:
        return hccl.exec_timeout * hccl.time_scale / 2, "half of job.hccl's scaled timeout"
    if group is not None:
        return group / 2, "half of job.torchrun.group_timeout"
    return PATIENCE, "a collective on a CPU gives up after 30 s"


def _check_heartbeat(scenario: Scenario, fault: Scheduled, problems: Problems) -> None:
    needing = [mechanism for mechanism in switched_on(scenario.job.protection) if mechanism in NEEDS["MindIO"]]
    if needing:
        problems.add(
            "job.protection",
            f"{fault.fault.kind} stops all Python of its process ({problems.where(fault.path)}). The vendor's "
            f"heartbeat is no Python and goes on, that of the stand-in stops, so with {', '.join(needing)} nothing "
            "can be judged",
            text=needing[0],
            hint=f"use suspend for a heartbeat that stops, hang for one that goes on, or switch {RESTARTING} on alone",
        )
