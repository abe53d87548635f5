"""Budgets of the recovery time: by timing profile, by mechanism, by phase."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from chaos.base.growth import FEW
from chaos.plan.model import ENDING, PHASES, Budget
from chaos.plan.problems import Problems
from chaos.scenario.errors import suggest
from chaos.scenario.model import Scenario

AFTER_RESTART = ("relaunch", "load", "compile", "first step", "caught up")
"""Phases of an end-of-life checkpoint that come only when the job is started again."""


@dataclass(frozen=True)
class Profile:
    """Budgets in seconds of one timing profile.

    ``silence`` replaces the budget of the detection where a rank is suspended: its connections stay up, so only the
    missing heartbeat tells of it. None for a mechanism that such a rank does not call for. ``unanswered`` is how much
    longer the stop takes where others are lost with it: the controller acts on the first that it misses, and asks one
    whose silence it has not noticed yet as it asks the living. ``given_up`` is how long it may be tried in vain before
    the next mechanism begins. ``agent`` is how much longer the exit takes with a cluster's agent: the controller waits
    for it to end the ranks, before it tells them to.
    ``replacement`` is no budget: as long the SDK waits for a new process before it gives the replacement up.
    ``ecc`` replaces the total where the memory error is an HBM multi-bit ECC error.
    """

    total: float
    phases: Mapping[str, float]
    silence: float | None = None
    unanswered: float = 0.0
    given_up: float = 0.0
    agent: float = 0.0
    replacement: float = 0.0
    ecc: float | None = None


_FAST_ONLINE = Profile(total=20.0, phases={"detection": 1.0, "stop": 5.0, "repair": 5.0, "first step": 15.0})
"""Online repair with short waits. Nothing waits for a heartbeat, since the rank reports its error itself. The total is
below the sum of the phases: each may be slow on two busy cores, not all of them."""

_VENDOR_ONLINE = Profile(total=30.0, phases={"detection": 6.0, "stop": 10.0, "repair": 10.0, "first step": 20.0})
"""Online repair with the vendor's waits. Total: the vendor states under 30 s for an online repair by UCE, and HCCE does
less. Detection: an error that is reported is seen at the next check, every 2 s, and once more; 2 s were observed. The
limits of the SDK's own actions (30 s for a pre-lock, 180 s for others) would not fit into that total."""


_FAST_PAUSE = Profile(total=math.inf, phases={"stop": 10.0, "first step": 15.0})
"""A pause with short waits: the ranks finish the step that they are in. How long it lasts is the scenario's choice."""

_VENDOR_PAUSE = Profile(total=math.inf, phases={"stop": 15.0, "first step": 20.0})
"""A pause with the vendor's waits: the controller looks for an order every 2 s and then collects the states for 5 s."""

_FAST_ROLLBACK = Profile(
    total=40.0, phases={"detection": 5.0, "load": 10.0, "first step": 15.0, "caught up": 30.0}, silence=None
)
"""A rollback waits for no clock: the norm is looked at when the step ends. What it takes is loading and training."""

_VENDOR_ROLLBACK = Profile(
    total=180.0, phases={"detection": 10.0, "load": 60.0, "first step": 60.0, "caught up": 120.0}, silence=None
)
"""Total: what the vendor states for the slower of the recoveries without a job restart, under 3 minutes."""


_HARDWARE_ONLINE = Profile(total=30.0, phases={}, ecc=60.0)
"""The vendor states an online repair by UCE in under 30 s, of an HBM multi-bit ECC error in 1 min; HCCE does less."""

_HARDWARE_RESTART = Profile(total=600.0, phases={})
"""The vendor states a restart of the job in under 10 minutes."""

_HARDWARE: Mapping[str, Profile] = MappingProxyType(
    {
        "TTP": _HARDWARE_RESTART,
        "RSC": _HARDWARE_RESTART,
        "UCE": _HARDWARE_ONLINE,
        "HCCE": _HARDWARE_ONLINE,
        "ARF": Profile(total=180.0, phases={}, given_up=660.0, replacement=600.0),
        "TRE": Profile(total=180.0, phases={}),
        "TSP": Profile(total=math.inf, phases={}),
    }
)
"""Real devices: what the vendor states for the whole of a recovery (MindCluster, resumable training: UCE online 30 s,
HBM multi-bit ECC 1 min, process rescheduling 3 min, job restart 10 min), and nothing for its phases, of which it states
nothing. A rollback is held to what holds for a process. In vain: the SDK waits 10 minutes for a new process."""


PROFILES: Mapping[str, Mapping[str, Profile]] = MappingProxyType(
    {
        # The fast profile: the SDK's waits are short, the rest is what a rehearsal takes on two busy cores. A broken
        # connection is believed at once, silence only after 5 s.
        "fast": {
            "TTP": Profile(
                total=180.0,
                phases={
                    "detection": 2.0,
                    "stop": 5.0,
                    "save": 15.0,
                    "exit": 10.0,
                    "relaunch": 60.0,
                    "load": 60.0,
                    "compile": 60.0,
                    "first step": 30.0,
                    "caught up": 60.0,
                },
                silence=8.0,
                unanswered=5.0,
            ),
            # The agent looks every 0.1 s; starting again takes what it takes with TTP.
            "RSC": Profile(
                total=150.0,
                phases={
                    "detection": 3.0,
                    "stop": 5.0,
                    "relaunch": 60.0,
                    "load": 60.0,
                    "compile": 60.0,
                    "first step": 30.0,
                    "caught up": 60.0,
                },
            ),
            "UCE": _FAST_ONLINE,
            "HCCE": _FAST_ONLINE,
            "TSP": _FAST_PAUSE,
            # A new process imports MindSpore and builds its network while others use the cores too. In vain: the SDK
            # waits 40 s for a new process.
            "ARF": Profile(
                total=150.0,
                phases={
                    "detection": 2.0,
                    "stop": 10.0,
                    "restart": 60.0,
                    "rebuild": 60.0,
                    "repair": 15.0,
                    "first step": 30.0,
                },
                silence=8.0,
                given_up=75.0,
                replacement=40.0,
            ),
            "TRE": _FAST_ROLLBACK,
        },
        # The vendor's waits. Detection: a heartbeat is lost after 8 s, checked every 2 s and once more. Stop: states
        # are collected for 5 s and a pre-lock takes up to 30 s. Save: an action has 180 s. Exit, with an agent: its
        # answer is waited for 30 s (MINDIO_WAIT_MINDX_TIME). In all: the vendor has a job started again in under 10
        # minutes.
        "vendor": {
            "TTP": Profile(
                total=600.0,
                phases={
                    "detection": 15.0,
                    "stop": 40.0,
                    "save": 180.0,
                    "exit": 30.0,
                    "relaunch": 60.0,
                    "load": 60.0,
                    "compile": 180.0,
                    "first step": 60.0,
                    "caught up": 120.0,
                },
                silence=15.0,
                agent=30.0,
            ),
            # The agent looks every 5 s. In all: the vendor has a job rescheduled in under 10 minutes.
            "RSC": Profile(
                total=600.0,
                phases={
                    "detection": 10.0,
                    "stop": 30.0,
                    "relaunch": 60.0,
                    "load": 60.0,
                    "compile": 180.0,
                    "first step": 60.0,
                    "caught up": 120.0,
                },
            ),
            "UCE": _VENDOR_ONLINE,
            "HCCE": _VENDOR_ONLINE,
            "TSP": _VENDOR_PAUSE,
            # 12 to 13 s were observed from the death to the next step. In vain: the SDK waits 10 minutes.
            "ARF": Profile(
                total=240.0,
                phases={
                    "detection": 15.0,
                    "stop": 40.0,
                    "restart": 60.0,
                    "rebuild": 60.0,
                    "repair": 30.0,
                    "first step": 60.0,
                },
                silence=15.0,
                given_up=660.0,
                replacement=600.0,
            ),
            "TRE": _VENDOR_ROLLBACK,
        },
        "hardware": _HARDWARE,
    }
)
"""Timing profile → mechanism → budgets."""


def growth(timings: str, ranks: int) -> float:
    """How many times as long as for a few ranks the budgets of a timing profile are for so many.

    The ranks of a rehearsal share the cores of one machine. What the vendor states holds for any number of ranks.
    """
    return max(1.0, ranks / FEW) if timings == "fast" else 1.0


def profile_of(timings: str, mechanism: str, ranks: int) -> Profile:
    """The budgets of a mechanism for so many ranks. How long the SDK waits for a new process does not grow."""
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
) -> Budget:
    """Budgets of the profile, with those that the scenario writes in their place.

    ``silent`` says that a rank is suspended, so that the detection has to wait for its silence; ``lost`` is how many
    ranks are lost, it included. ``tried`` are the mechanisms that are tried before in vain: what they may take is
    added to the phase ``stop`` and to the total. Without a resume the phases after the restart have none, and the total
    is the sum of the phases that are left. ``ecc`` says that an HBM multi-bit ECC error is to be repaired. ``waits`` is
    how much later the job is started again because a fault of the scenario lasts so long.
    A budget for a phase that cannot come is noted as a problem.
    """
    written = scenario.expect.recovery
    if mechanism is None or mechanism not in PHASES:
        if written is not None and (written.total is not None or written.phases):
            problems.add("expect.recovery", "a recovery has a budget, but the plan shows that no mechanism acts")
        return Budget(None, {})
    timings, ranks = scenario.job.timings, scenario.cluster.ranks
    chosen = profile_of(timings, mechanism, ranks)
    whole = resumes or mechanism not in ENDING
    named = [name for name in PHASES[mechanism] if whole or name not in AFTER_RESTART]
    phases = {name: chosen.phases[name] for name in named if name in chosen.phases}
    in_vain = sum(profile_of(timings, one, ranks).given_up for one in tried)
    if silent and chosen.silence is not None:
        phases["detection"] = chosen.silence
    if "stop" in phases:
        phases["stop"] += in_vain + (chosen.unanswered if silent and lost > 1 else 0.0)
    if "exit" in phases and scenario.job.agent:
        phases["exit"] += chosen.agent
    if "relaunch" in phases:
        phases["relaunch"] += waits
    stated = chosen.ecc if ecc and chosen.ecc is not None else chosen.total
    total = stated + in_vain + waits if whole or not phases else sum(phases.values())
    for name, seconds in written.phases.items() if written else ():
        if name in phases or (name in named and not chosen.phases):
            phases[name] = seconds
        else:
            _refuse_phase(name, mechanism, phases, problems)
    if written is not None and written.total is not None:
        total = written.total
    return Budget(None if math.isinf(total) else total, phases)


def _refuse_phase(name: str, mechanism: str, phases: Mapping[str, float], problems: Problems) -> None:
    path = f"expect.recovery.phases.{name}"
    if name in PHASES[mechanism]:
        message = f"phase {name!r} never comes: the job is not started again ({problems.where('job.resume')})"
        problems.add(path, message, text=name, hint="remove it, or set job.resume: true")
        return
    message = f"a recovery by {mechanism} has no phase {name!r}"
    problems.add(path, message, text=name, hint=suggest(name, phases))
