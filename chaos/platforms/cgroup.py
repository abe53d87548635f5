"""A control group of a fault's own for the processor time of a process (cgroups(7), both versions).

Version 1 has the files ``cpu.cfs_*``, version 2 ``cpu.max``. Nothing is written to a group that is not the run's own:
with version 1 the group is made below the one that the process is in. With version 2 a group has a quota only where the
one above hands the controller on (``cgroup.subtree_control``), which nobody here changes; so it is made in the nearest
group above the process that does so already. The process must not leave any limit behind by that.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from chaos.platforms.procfs import PROC, read_text

_PERIOD = 100_000
"""Microseconds over which the kernel counts; its default."""


_LIMITS = ("cpu.max", "cpuset.cpus", "cpuset.mems", "io.max", "memory.high", "memory.max", "pids.max")


@dataclass(frozen=True)
class Hierarchy:
    """Where the controller ``cpu`` is mounted, and which version it is."""

    mount: Path
    version: int


def cpu_hierarchy(proc_root: Path = PROC) -> Hierarchy | None:
    """The hierarchy that controls processor time, None where there is none."""
    unified = None
    for line in (proc_root / "self" / "mountinfo").read_text("utf-8", "surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.partition(" ")
        point = Path(before.split(" ")[4])
        if kind == "cgroup" and "cpu" in options.split(" ")[-1].split(","):
            return Hierarchy(point, 1)
        if kind == "cgroup2" and _has_cpu(point):
            unified = Hierarchy(point, 2)
    return unified


def group_of(pid: int, hierarchy: Hierarchy, proc_root: Path = PROC) -> Path:
    """The directory of the group that a process is in. Raises ProcessLookupError when it has ended."""
    text = read_text(pid, "cgroup", proc_root)
    for line in (text or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(",") or (hierarchy.version == 2 and not controllers):
            return hierarchy.mount / path.lstrip("/")
    raise ProcessLookupError(f"process {pid} has ended")


def place_for(pid: int, hierarchy: Hierarchy, proc_root: Path = PROC) -> Path:
    """The group in which one for the process can be made. Raises OSError with the reason where there is none."""
    own = group_of(pid, hierarchy, proc_root)
    if ".." in own.parts:
        raise OSError(f"the control group of process {pid} is not seen from here")
    if hierarchy.version == 1:
        return own
    for group in (own, *own.parents):
        if not group.is_relative_to(hierarchy.mount):
            break
        if "cpu" in (group / "cgroup.subtree_control").read_text("ascii").split():
            return group
        if limits := [name for name in _LIMITS if _is_limited(group / name)]:
            raise OSError(f"{group} hands processor time on to no group, and it has limits of its own: {limits}")
    raise OSError(f"neither {own} nor a group above it hands processor time on (cgroup.subtree_control)")


def throttle(pid: int, name: str, cores: float, hierarchy: Hierarchy) -> Path:
    """Put a process into a new group of that name, which gets so many cores' time. Raises OSError."""
    own = group_of(pid, hierarchy)
    if own.name == name:
        return own
    group = place_for(pid, hierarchy) / name
    group.mkdir()
    quota = max(1000, int(cores * _PERIOD))
    if hierarchy.version == 2:
        (group / "cpu.max").write_text(f"{quota} {_PERIOD}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
        (group / "cpu.cfs_quota_us").write_text(str(quota))
    (group / "cgroup.procs").write_text(str(pid))
    return group


def throttled(group: Path) -> int:
    """How many periods the group had to wait in. Raises OSError."""
    lines = dict(line.split() for line in (group / "cpu.stat").read_text("ascii").splitlines())
    return int(lines.get("nr_throttled", 0))


def dissolve(group: Path, back: Path) -> int:
    """Move whoever is in the group back to where it was, and remove it; how many they were. Raises OSError."""
    for name, unlimited in (("cpu.max", "max"), ("cpu.cfs_quota_us", "-1")):
        if (group / name).exists():  # whatever becomes of the move, nobody is slowed any more
            (group / name).write_text(unlimited)
    moved = 0
    for pid in (group / "cgroup.procs").read_text("ascii").split():
        try:
            (back / "cgroup.procs").write_text(pid)
            moved += 1
        except ProcessLookupError:
            continue
    group.rmdir()
    return moved


def _is_limited(file: Path) -> bool:
    try:
        return file.read_text("ascii").split()[:1] not in ([], ["max"])
    except OSError:
        return False


def _has_cpu(point: Path) -> bool:
    try:
        return "cpu" in (point / "cgroup.controllers").read_text("ascii").split() and os.access(point, os.W_OK)
    except OSError:
        return False
