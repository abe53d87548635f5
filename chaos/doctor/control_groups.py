"""Control groups that limit processes."""

from __future__ import annotations

import os

from chaos.machine.linux.cgroup import cpu_hierarchy, place_for
from chaos.machine.linux.memory_group import NoMemoryGroup, memory_groups
from chaos.machine.probe import Machine, Probe


def cgroup(_: Machine) -> Probe:
    """Return whether processor time can be limited."""
    hierarchy = cpu_hierarchy()
    if hierarchy is None:
        return Probe("cgroup-cpu", False, "none is mounted", "a quota needs the control group controller cpu: mount it")
    if not os.access(hierarchy.mount, os.W_OK):
        return Probe(
            "cgroup-cpu", False, f"{hierarchy.mount} cannot be written", "a quota of processor time needs root"
        )
    try:
        place = place_for(os.getpid(), hierarchy)
    except OSError as error:
        return Probe(
            "cgroup-cpu", False, str(error), "run it in a group whose parent enables the cpu controller for it"
        )
    return Probe("cgroup-cpu", True, f"version {hierarchy.version} in {place}")


def memory_group(_: Machine) -> Probe:
    """Return whether memory can be limited, so that the kernel kills a process that takes more."""
    try:
        groups = memory_groups()
    except (NoMemoryGroup, OSError) as error:
        advice = "an OOM kill needs a control group with a limit: run as root, or in a group that is delegated"
        return Probe("memory-group", False, str(error), advice)
    return Probe("memory-group", True, f"version {groups.version} in {groups.parent}")
