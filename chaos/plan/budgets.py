"""Budgets of the recovery time: by timing profile, by mechanism, by phase."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from chaos.base.growth import FEW
from chaos.plan.parts.response import ENDING, PHASES, Budget, phases_of
from chaos.plan.problems import Problems
from chaos.plan.recovery.registry import Facts
from chaos.scenario.errors import suggest
from chaos.scenario.models.scenario import ExpectRecovery, Scenario


@dataclass(frozen=True)
class Profile:
    """Budgets in seconds of one timing profile.

    ``silence`` replaces the detection budget where a rank is silent and lives: its connections stay up, so only the
    missing heartbeat shows it. It is None where such a rank does not call for the mechanism. ``unanswered`` is how
    much longer the stop takes where other ranks are lost with it: the controller acts on the first rank that it
    misses, and still asks a rank whose silence it has not noticed yet. ``given_up`` is how long the mechanism may be
    tried in vain before the next one begins. ``agent`` is how much longer the exit takes with a cluster's agent: the
    controller waits for the agent to end the ranks before it orders them to exit. ``replacement`` is no budget: it is
    the time for which the SDK waits for a new process before it gives up the replacement. ``ecc`` replaces the total
    where the memory error is an HBM multi-bit ECC error.
    """

    total: float
    phases: Mapping[str, float]
    silence: float | None = None
    unanswered: float = 0.0
    given_up: float = 0.0
    agent: float = 0.0
    replacement: float = 0.0
    ecc: float | None = None


def _of(timings: str) -> Facts[Profile]:
    return Facts(lambda mechanism: mechanism.budgets.get(timings))


PROFILES: Mapping[str, Mapping[str, Profile]] = MappingProxyType(
    {timings: _of(timings) for timings in ("fast", "vendor", "hardware")}
)
"""Timing profile → mechanism → budgets.

fast: the SDK's waits are short, the rest is what a rehearsal takes on two busy cores. vendor: the vendor's waits.
hardware: real devices, with the vendor's figure for the whole of a recovery.
"""


def growth(timings: str, ranks: int) -> float:
    """Return the factor by which the budgets of a timing profile grow with the number of ranks.

    The ranks of a rehearsal share the cores of one machine. The vendor's figures hold for any number of ranks.
    """
    return max(1.0, ranks / FEW) if timings == "fast" else 1.0


def profile_of(timings: str, mechanism: str, ranks: int) -> Profile:
    """Return the budgets of a mechanism for this number of ranks. ``replacement`` does not grow with it."""
    chosen, times = PROFILES[timings][mechanism], growth(timings, ranks)
    return replace(
        chosen,
        total=chosen.total * times,
        phases={name: seconds * times for name, seconds in chosen.phases.items()},
        silence=None if chosen.silence is None else chosen.silence * times,
        unanswered=chosen.unanswered * times,
        given_up=chosen.given_up * times,
        agent=chosen.agent * times,
    )


def plan_budget(
    mechanism: str | None,
    resumes: bool,
    scenario: Scenario,
    problems: Problems,
    *,
    silent: bool,
    lost: int = 1,
    tried: Collection[str] = (),
    ecc: bool = False,
    waits: float = 0.0,
    longer: Mapping[str, float] = MappingProxyType({}),
) -> Budget:
    """Return the budgets of the profile; a budget written in the scenario replaces the profile's.

    ``silent`` says that a rank may live on without answering, so the detection may have to wait for its silence;
    ``lost`` is the number of lost ranks, that one included. ``tried`` are the mechanisms that are tried in vain
    before: their time is added to the phase ``stop`` and to the total. Without a resume the phases after the restart
    have no budget, and the total is the sum of the phases that are left. ``ecc`` says that an HBM multi-bit ECC error
    is to be repaired. ``waits`` is how much later the job is started again because a fault of the scenario lasts so
    long. ``longer`` is how much longer phases take because of the faults, by phase. A budget for a phase that cannot
    come is noted as a problem.
    """
    if mechanism is None or mechanism not in PHASES:
        return _budget_of_restart(phases_of(mechanism, resumes=resumes), scenario.expect.recovery, problems)
    written = scenario.expect.recovery
    timings, ranks = scenario.job.timings, scenario.cluster.ranks
    chosen = profile_of(timings, mechanism, ranks)
    whole = resumes or mechanism not in ENDING
    named = phases_of(mechanism, resumes=resumes)
    phases = {name: chosen.phases[name] for name in named if name in chosen.phases}
    in_vain = sum(profile_of(timings, failed, ranks).given_up for failed in tried)
    if silent and chosen.silence is not None:
        phases["detection"] = chosen.silence
    if "stop" in phases:
        phases["stop"] += in_vain + (chosen.unanswered if silent and lost > 1 else 0.0)
    if "exit" in phases and scenario.job.agent:
        phases["exit"] += chosen.agent
    if "relaunch" in phases:
        phases["relaunch"] += waits
    phases = {name: seconds + longer.get(name, 0.0) for name, seconds in phases.items()}
    stated = chosen.ecc if ecc and chosen.ecc is not None else chosen.total
    total = stated + in_vain + waits + sum(longer.values()) if whole or not phases else sum(phases.values())
    for name, seconds in written.phases.items() if written else ():
        if name in phases or (name in named and not chosen.phases):
            phases[name] = seconds
        else:
            _refuse_phase(name, mechanism, phases, problems)
    if written is not None and written.total is not None:
        total = written.total
    if written is not None and written.rollback is not None and not whole:
        message = f"no step is trained again: the job is not started again ({problems.where('job.resume')})"
        problems.add("expect.recovery.rollback", message, hint="remove it, or set job.resume: true")
    return Budget(None if math.isinf(total) else total, phases, None if written is None else written.rollback)


def _budget_of_restart(named: tuple[str, ...], written: ExpectRecovery | None, problems: Problems) -> Budget:
    """Return the budgets of the restart of a job: those that the scenario writes, for nobody promises any other.

    How long a job takes to start and to load is known only to its owner.
    """
    if written is None:
        return Budget(None, {})
    if not named:
        if written.total is not None or written.phases or written.rollback is not None:
            message = (
                "a recovery has a budget, but the plan shows that no mechanism acts and that the job is not started "
                "again"
            )
            problems.add("expect.recovery", message, hint="remove it, or say in expect.resume where training goes on")
        return Budget(None, {})
    for name in written.phases:
        if name not in named:
            message = f"the restart of a job has no phase {name!r}"
            problems.add(f"expect.recovery.phases.{name}", message, text=name, hint=suggest(name, named))
    return Budget(written.total, dict(written.phases), written.rollback)


def _refuse_phase(name: str, mechanism: str, phases: Mapping[str, float], problems: Problems) -> None:
    path = f"expect.recovery.phases.{name}"
    if name in PHASES[mechanism]:
        message = f"phase {name!r} never comes: the job is not started again ({problems.where('job.resume')})"
        problems.add(path, message, text=name, hint="remove it, or set job.resume: true")
        return
    message = f"a recovery by {mechanism} has no phase {name!r}"
    problems.add(path, message, text=name, hint=suggest(name, phases))
