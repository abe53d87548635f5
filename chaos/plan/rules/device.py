"""Limits of the device that a job trains on: MindSpore's features there, and a platform's."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.plan.platform_traits import PlatformTraits
from chaos.plan.recovery.registry import mechanisms
from chaos.plan.rules.constraints import Violation
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario

_ASCEND_ONLY = "MindIO adapter only support on Ascend device but got device CPU!"
"""The error that MindSpore 2.10 raises where fault tolerance is switched on elsewhere
(TrainFaultTolerance._check_init)."""


def device_violations(scenario: Scenario, traits: JobTraits, platform: PlatformTraits) -> Iterator[Violation]:
    """Yield the scenario's demands that the device, or its host, cannot meet."""
    job, kind = scenario.job, f"job kind {scenario.job.kind!r}"
    if job.device not in traits.devices:
        yield Violation(
            "job.device",
            f"{kind} does not train on {job.device}",
            text=job.device,
            hint=f"use {' or '.join(sorted(traits.devices))}, or the job kind mindspore",
        )
        return
    if job.timings == "hardware" and job.device == "CPU":
        yield Violation(
            "job.timings",
            f"the budgets of hardware are for jobs on a device, but the job trains on {job.device}",
            text=job.timings,
            hint="use fast or vendor, or set job.device",
        )
    if job.resume_arguments and not traits.resumes_periodic:
        yield Violation(
            "job.resume_arguments",
            f"{kind} tells its script by itself that the job is started again",
            hint="leave it out, or use the job kind mindspore",
        )
    yield from _interpreter(scenario, traits)
    yield from _of_the_script(scenario, traits)
    if not traits.genuine:
        return
    of_framework = [name for name in job.protection if not mechanisms()[name].of_launcher]
    if of_framework and job.device == "CPU" and traits.mindspore:
        yield Violation(
            "job.device",
            f"on a CPU MindSpore has no fault tolerance ({_ASCEND_ONLY}), {kind} puts nothing in its place, and "
            f"{', '.join(of_framework)} is on",
            text=job.device,
            hint="leave job.protection empty, set job.device: Ascend, or use the job kind rehearsal",
        )
    elif of_framework and traits.vendor is None:
        yield Violation(
            "job.protection",
            f"{kind} trains with no part of MindSpore, and {', '.join(of_framework)} is its fault tolerance",
            text=of_framework[0],
            hint="leave it out, or use a job kind of MindSpore or MindSpeed-LLM",
        )
    if job.controller != "rank 0" and not job.agent:
        yield Violation(
            "job.controller",
            f"{kind} hosts no controller outside the ranks: on a cluster MindCluster's agent does",
            text=job.controller,
            hint="leave it out, or use the job kind rehearsal",
        )
    if scenario.cluster.nodes > 1 and platform.one_launcher:
        yield Violation(
            "cluster.nodes",
            f"{kind} starts every rank on this host, so there is one node",
            text=str(scenario.cluster.nodes),
            hint=platform.for_hosts,
        )


def _interpreter(scenario: Scenario, traits: JobTraits) -> Iterator[Violation]:
    """Yield that the job has an interpreter of its own, where its kind takes none."""
    job = scenario.job
    if job.python is not None and not traits.own_python:
        yield Violation(
            "job.python",
            f"job kind {job.kind!r} runs its ranks with the Python of chaos, or that of the platform",
            text=job.python,
            hint="leave it out, or use the job kind torch",
        )


def _of_the_script(scenario: Scenario, traits: JobTraits) -> Iterator[Violation]:
    """Yield keys about a script's optimizers and generators, where the agent of the job's kind has no part in them."""
    if scenario.job.step_optimizer is not None and not traits.optimizers:
        yield Violation(
            "job.step_optimizer",
            f"job kind {scenario.job.kind!r} does not tell a script's optimizers apart",
            text=str(scenario.job.step_optimizer),
            hint="leave it out, or use the job kind torch",
        )
    if scenario.job.seed_at_start and not traits.seeds:
        yield Violation(
            "job.seed_at_start",
            f"job kind {scenario.job.kind!r} seeds no generator of a script",
            text="true",
            hint="leave it out, or use the job kind torch",
        )
