"""A rehearsal whose agent comes as a callback, as it must on a cluster that allows no PYTHONPATH of ours.

The device layer is an extension of the agent and has to be there before MindSpore is imported; a callback comes long
after. So there is no device layer: the kernels that a CPU lacks load by themselves (``site/``), MindSpore forms its own
cluster, gradients are reduced by MindFormers' own step. The plan refuses every scenario that needs the device layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from chaos.jobs.kind import Simulated
from chaos.plan.traits import JobTraits
from chaos.scenario.models.scenario import Scenario

SITE = Path(__file__).parent / "site"
"""The directory before the job's PYTHONPATH: kernels only."""

_LAYER = frozenset({"job.agent", "job.hccl", "job.storage.mb_per_second"})
"""Keys that the device layer heeds, or the stand-ins that come with it."""

_REPORTED = frozenset({"uce", "ecc", "hcce", "suspect-remote", "link-error"})
"""Faults that a device would report."""


def traits_of(rehearsed: JobTraits, genuine: JobTraits) -> JobTraits:
    """Return the traits of a job of this kind without the device layer.

    It can do what the genuine kind can, on one rank, unprotected.
    """
    without = "has no device layer or stand-in that would heed it"
    return replace(
        rehearsed,
        observable=genuine.observable,
        gradients=genuine.gradients,
        ports=genuine.ports,
        own_ports=genuine.own_ports,
        lacks={**rehearsed.lacks, **dict.fromkeys(sorted(_LAYER), without)},
        mechanisms=frozenset(),
        # MindFormers needs a barrier of several ranks, which MindSpore lacks on a CPU.
        most_ranks=1,
    )


def simulated(scenario: Scenario) -> Iterator[Simulated]:
    """Yield the stand-ins beside the kernels: nothing but the faults themselves."""
    if any(fault.kind in _REPORTED for fault in scenario.faults):
        yield Simulated("the device's error, raised where the framework would get it", "device layer")


def trained_from(data: dict[str, Any]) -> dict[str, Any]:
    """Return the copy of a configuration, with processors that are not bound to devices.

    Without ``affinity_cpu_list`` MindSpore (2.10) shares the processors out among the devices, of which a CPU has none,
    and divides by their number. A list binds nothing: MindFormers (2.1, build_context.py) warns and passes it over.
    """
    context = data.get("context")
    context = context if isinstance(context, dict) else {}
    if context.keys() & {"affinity_cpu_list", "affinity_config"}:
        return data
    return {**data, "context": {**context, "affinity_cpu_list": []}}
