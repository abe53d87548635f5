"""The protection of the planned job."""

from __future__ import annotations

from dataclasses import dataclass, field

from chaos.plan.parts.recovery_options import RecoveryOptions, recovery_options
from chaos.plan.recovery.vendor import Vendor
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
    agent. ``watch`` is None where nobody watches the global norm. ``cleans_before_saving`` and ``exit_code`` are those
    of the vendor for the end-of-life checkpoint.
    """

    protection: tuple[str, ...]
    strategies: tuple[str, ...] = ()
    recovery_options: RecoveryOptions = field(default_factory=RecoveryOptions)
    watch: Watch | None = None
    cleans_before_saving: bool = False
    exit_code: int = 1


def plan_fault_tolerance(scenario: Scenario, vendor: Vendor) -> FaultTolerance:
    """Return the fault tolerance that the scenario switches on."""
    job = scenario.job
    return FaultTolerance(
        protection=job.protection,
        strategies=job.strategies if job.agent else (),
        recovery_options=recovery_options(scenario),
        watch=None if job.tre is None else Watch(job.tre.threshold, job.tre.recorded),
        cleans_before_saving=vendor.cleans_before_saving,
        exit_code=vendor.exit_code,
    )
