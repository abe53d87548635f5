"""Runs one cell: checks this machine for everything that the cell needs, leases processor cores, and leaves nothing."""

from __future__ import annotations

import os
from dataclasses import replace

from chaos.base.clock import SYSTEM_CLOCK, Clock
from chaos.base.refusal import Refused
from chaos.base.wait import Patience
from chaos.doctor import INTERFACE, OWN_AGENT, Machine, probe
from chaos.machine.leases import Lease, Leases
from chaos.machine.linux.children import subreaper
from chaos.platforms.kind import PlatformKind
from chaos.run.cell_run import CellRun
from chaos.run.deadlines import with_deadlines
from chaos.run.interrupts import interruptible
from chaos.run.open_files import refuse_too_few
from chaos.run.options import RunOptions, RunOutcome
from chaos.run.prepare.prepared import Prepared
from chaos.run.progress import Progress
from chaos.store.key import seal_of

_CORES_SECONDS = 4 * 3600.0
"""How long a run waits for processor cores that other runs hold."""


def run_cell(prepared: Prepared, options: RunOptions, progress: Progress, *, clock: Clock = SYSTEM_CLOCK) -> RunOutcome:
    """Run one cell and judge it.

    Whatever ends the run, its processes are ended and its faults undone first. Raises Refused where this machine lacks
    something that the run needs, and errors of the harness itself; an error of the job becomes the verdict.
    """
    plan = prepared.plan
    if options.baseline is not None:
        plan = replace(plan, equivalence=replace(plan.equivalence, baseline=options.baseline))
    prepared = replace(prepared, plan=plan, cell=with_deadlines(prepared.cell))
    _refuse_if_lacking(prepared)
    if prepared.registered.platform.own_limits:
        refuse_too_few(prepared.scenario.cluster.ranks)
    seal_of("")  # makes the key or refuses now: the wait for cores may take hours
    leases = Leases()
    core_count = options.cores or len(os.sched_getaffinity(0))
    patience = Patience(_CORES_SECONDS, clock)
    with (
        subreaper(),
        interruptible(),
        _cores_here(prepared.registered.platform, leases, core_count, patience, progress) as cores,
    ):
        return CellRun(prepared, options, progress, clock, leases, cores).run()


def _cores_here(
    platform: PlatformKind, leases: Leases, core_count: int, patience: Patience, progress: Progress
) -> Lease:
    """Return cores for the job; no cores where its ranks run on other machines, whose cores cannot be leased here."""
    if platform.elsewhere:
        return Lease((), [])

    def blocked(reason: str) -> None:
        progress.wait_for_cores(reason, patience.seconds)

    return leases.take_cores(1, up_to=core_count, wait=patience, blocked=blocked, limit=patience.seconds)


def _refuse_if_lacking(prepared: Prepared) -> None:
    # The stand-in is the alternative to a vendor's package that does not fit.
    needs = {*prepared.needs} - ({INTERFACE, OWN_AGENT} if prepared.sdk == "standin" else set())
    scenario = prepared.scenario
    if (why := prepared.registered.job.plans_only) is not None:
        raise Refused(f"scenario {scenario.name}: jobs of the kind {scenario.job.kind} are planned, and not run: {why}")
    settings = prepared.registered.named.settings_in(scenario)
    lacking = [observation for observation in probe(needs, Machine(settings=settings)) if not observation.ok]
    if lacking:
        listed = "".join(f"\n  {observation.need}: {observation.seen}; {observation.advice}" for observation in lacking)
        listed += "\n  what it can run: chaos doctor"
        raise Refused(f"this machine lacks what scenario {scenario.name} needs{listed}")
