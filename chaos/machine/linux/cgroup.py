"""Control groups (cgroups(7), both versions): the members of a group, and a fault's own group for processor time.

Version 1 has the files ``cpu.cfs_*``, version 2 ``cpu.max``. Nothing is written to a group that is not the run's own:
with version 1 the group is made below the process's group. With version 2 a group has a quota only where its parent
delegates the controller (``cgroup.subtree_control``), which chaos never changes; so the group is made in the process's
nearest ancestor group that delegates it already. The process must not escape any limit by that move.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from chaos.machine.linux.mounts import all_mounts
from chaos.machine.linux.process import NoSuchProcess, ProcessIdentity, has_ended, identify, state
from chaos.machine.linux.procfs import PROC, kernel_lines, read_stat, read_text

_PERIOD = 100_000
"""Microseconds over which the kernel counts; its default."""

_ROUNDS = 100
"""How often the members of a group are looked up before the attempt to empty it is abandoned."""


_LIMITS = ("cpu.max", "cpuset.cpus", "cpuset.mems", "io.max", "memory.high", "memory.max", "pids.max")


@dataclass(frozen=True)
class Hierarchy:
    """The mount point of a controller, and its version."""

    mount: Path
    version: int
    controller: str = "cpu"


def cpu_hierarchy(proc_root: Path = PROC) -> Hierarchy | None:
    """Return the hierarchy that controls processor time, None where there is none."""
    unified = None
    for mount in all_mounts("self", proc_root):
        point = Path(mount.point)
        if mount.type == "cgroup" and "cpu" in mount.super_options:
            return Hierarchy(point, 1)
        if mount.type == "cgroup2" and _has_cpu(point):
            unified = Hierarchy(point, 2)
    return unified


def group_of(pid: int | str, hierarchy: Hierarchy, proc_root: Path = PROC) -> Path:
    """Return the directory of the group that a process is in. Raises ProcessLookupError when it has ended."""
    for line in kernel_lines(read_text(pid, "cgroup", proc_root) or ""):
        fields = line.split(":", 2)
        if len(fields) < 3:
            continue
        _, controllers, path = fields
        if hierarchy.controller in controllers.split(",") or (hierarchy.version == 2 and not controllers):
            return hierarchy.mount / path.lstrip("/")
    raise ProcessLookupError(f"process {pid} has ended")


def move(identity: ProcessIdentity, group: Path, hierarchy: Hierarchy, proc_root: Path = PROC) -> None:
    """Move that very process with all of its threads into a group. Raises OSError, and NoSuchProcess once it has ended.

    The kernel takes a PID, which may belong to another process by then. So the PID is checked again afterwards, and
    another process goes back to the group that it came from.
    """
    try:
        first = group_of(identity.pid, hierarchy, proc_root)
        if has_ended(state(identity, proc_root)):
            raise NoSuchProcess(f"{identity} has ended")
        before = group_of(identity.pid, hierarchy, proc_root)
        _put(group, identity.pid)
    except ProcessLookupError as error:
        raise NoSuchProcess(f"{identity} has ended") from error
    if (now := state(identity, proc_root)) == "gone":
        _send_back(identity.pid, group, None if before == first else before, hierarchy, proc_root)
    if has_ended(now):
        raise NoSuchProcess(f"{identity} has ended")


def _send_back(pid: int, group: Path, before: Path | None, hierarchy: Hierarchy, proc_root: Path) -> None:
    """Move a wrongly moved process back to its group.

    ``before`` is the group in which that process was seen; None where the process seen there may have been the ended
    one. Then it has only just got the PID, and belongs where the kernel has begun it: in its parent's group.
    """
    stat = read_stat(pid, proc_root)
    if stat is None or pid not in members(group):
        return
    # A process whose parent is outside this PID namespace has the group of the namespace's first process.
    _put(group_of(stat.ppid or 1, hierarchy, proc_root) if before is None else before, pid)


def _put(group: Path, pid: int) -> None:
    (group / "cgroup.procs").write_text(str(pid))


def place_for(pid: int, hierarchy: Hierarchy, proc_root: Path = PROC) -> Path:
    """Return the group in which a group for the process can be made.

    Raises OSError with the reason where there is none.
    """
    current = group_of(pid, hierarchy, proc_root)
    if ".." in current.parts:
        raise OSError(f"the control group of process {pid} is not seen from here")
    if hierarchy.version == 1:
        return current
    for group in (current, *current.parents):
        if not group.is_relative_to(hierarchy.mount):
            break
        if "cpu" in (group / "cgroup.subtree_control").read_text("ascii").split():
            return group
        if limits := [name for name in _LIMITS if _is_limited(group / name)]:
            raise OSError(f"{group} hands processor time on to no group, and it has limits of its own: {limits}")
    raise OSError(f"neither {current} nor a group above it hands processor time on (cgroup.subtree_control)")


def throttle(identity: ProcessIdentity, name: str, cores: float, hierarchy: Hierarchy, proc_root: Path = PROC) -> Path:
    """Put that very process into a new group of that name, limited to the time of ``cores`` cores.

    Raises OSError, and NoSuchProcess once it has ended: the group is there then, and is removed by :func:`dissolve`.
    """
    current = group_of(identity.pid, hierarchy, proc_root)
    if current.name == name:
        return current
    group = place_for(identity.pid, hierarchy, proc_root) / name
    group.mkdir()
    quota = max(1000, int(cores * _PERIOD))
    if hierarchy.version == 2:
        (group / "cpu.max").write_text(f"{quota} {_PERIOD}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
        (group / "cpu.cfs_quota_us").write_text(str(quota))
    move(identity, group, hierarchy, proc_root)
    return group


def throttled(group: Path) -> int:
    """Return the number of periods in which the group had to wait. Raises OSError."""
    return counts(group / "cpu.stat").get("nr_throttled", 0)


def counts(file: Path) -> dict[str, int]:
    """Return the kernel's counters in a file of a group, which has a name and a number a line. Raises OSError."""
    lines = (line.split() for line in kernel_lines(file.read_text("ascii")))
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}


def members(group: Path) -> list[int]:
    """Return the processes that are in the group. Raises FileNotFoundError when there is no such group."""
    return [int(line) for line in (group / "cgroup.procs").read_text("ascii").split()]


def dissolve(group: Path, back: Path, hierarchy: Hierarchy, proc_root: Path = PROC) -> int:
    """Move the group's processes back to their groups, remove the group, and return their number. Raises OSError."""
    for name, unlimited in (("cpu.max", "max"), ("cpu.cfs_quota_us", "-1")):
        if (group / name).exists():  # whatever becomes of the move, no process is slowed any more
            (group / name).write_text(unlimited)
    moved = 0
    for _ in range(_ROUNDS):  # a process that was not moved yet may start another, which is in the group then
        left = members(group)
        for pid in left:
            try:
                identity = identify(pid, proc_root)
                if pid not in members(group):
                    continue  # the PID may belong to another process since the list was read
                move(identity, back, hierarchy, proc_root)
                moved += 1
            except NoSuchProcess:
                continue
        if not left:
            break
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
