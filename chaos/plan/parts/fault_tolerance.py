"""The protection of the planned job."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.plan.parts.recovery_options import RecoveryOptions, recovery_options
from chaos.scenario.models.scenario import Scenario


@dataclass(frozen=True)
class Watch:
    """The watch over the global norm: its threshold, and steps that the record of an earlier run lists already."""

    threshold: float
    recorded: tuple[int, ...] = ()


@dataclass(frozen=True)
class FaultTolerance:
    """The fault tolerance that is switched on in the job.

    ``protection`` names the mechanisms. ``strategies`` are the agent's choices, empty where there is no cluster's
    agent. ``watch`` is None where nobody watches the global norm.
    """

    protection: tuple[str, ...]
    strategies: tuple[str, ...] = ()
    aids: RecoveryOptions = field(default_factory=RecoveryOptions)
    watch: Watch | None = None


def plan_fault_tolerance(scenario: Scenario) -> FaultTolerance:
    """Return the fault tolerance that the scenario switches on."""
    job = scenario.job
    return FaultTolerance(
        protection=job.protection,
        strategies=job.strategies if job.agent else (),
        aids=recovery_options(scenario),
        watch=None if job.tre is None else Watch(job.tre.threshold, job.tre.recorded),
    )
