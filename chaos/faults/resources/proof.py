"""Proofs that a rank has less of its machine: processor time, memory, descriptors."""

from __future__ import annotations

from chaos.evidence.fields import Fields, number, some
from chaos.evidence.injection.conditions import Condition, at_least, at_most, condition

_PROCESSES = 2
"""Number of processes of a load where the scenario says nothing (chaos/faults/resources/cpu_load.py)."""


def _loads_cores(parameters: Fields, evidence: Fields) -> str | None:
    """Return a doubt unless the load has all its processes on cores of the rank, each with processor time."""
    processes = number({"processes": _PROCESSES, **parameters}, "processes")
    if number(evidence, "beside") != processes or not evidence.get("cores"):
        running = f"{evidence.get('beside')} processes of the load run on cores {evidence.get('cores')}"
        return f"{running}, {processes} were planned"
    return some("consumed")(parameters, evidence)


def _has_limit(parameters: Fields, evidence: Fields) -> str | None:
    del parameters
    return None if number(evidence, "limit") is not None else f"limit is {evidence.get('limit')}"


CPU_LOAD = condition(
    Condition(_loads_cores, taken="the processes that made it may have been ended"),
    "the processor time that the load has got on the rank's cores",
    ("beside", "cores", "consumed"),
)
CPU_QUOTA = condition(
    Condition(
        some("throttled"), unchanged=("group",), taken="another process may have moved the rank out of its group"
    ),
    "the kernel's count of the times that it let the rank wait",
    ("group", "throttled"),
)
FD_LIMIT = condition(
    Condition(at_most("left", "spare", 32), _has_limit, ("limit",), "the rank may have raised it itself"),
    "the limit of open files that the kernel has for the process",
    ("limit", "left"),
)
MEMORY_LOAD = condition(
    Condition(
        at_least("resident", "megabytes", "MiB"),
        taken="the process that holds it is the first that the kernel ends for want of memory",
    ),
    "the memory of the load, as reported by the kernel",
    ("resident",),
)
