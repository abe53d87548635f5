"""A control group of the run's own with a limit of memory, version 1 or 2 (cgroups(7)).

Memory that a process used before it entered the group is not counted there; so the limit covers its later allocations.
The kernel ends a process of the group that exceeds the limit, and no other process: the machine's memory is not
touched.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from chaos.machine.linux.cgroup import Hierarchy, counts, group_of, move
from chaos.machine.linux.mounts import all_mounts
from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.linux.procfs import PROC

PREFIX = "chaos-oom-"
"""The prefix of such groups' names."""


class NoMemoryGroup(RuntimeError):
    """No group with a limit of memory can be made here. The text says why."""


@dataclass(frozen=True)
class MemoryGroups:
    """Where groups can be made: a directory of the hierarchy that controls memory."""

    parent: Path
    hierarchy: Hierarchy

    @property
    def version(self) -> int:
        """The version of control groups."""
        return self.hierarchy.version

    def path(self, name: str) -> Path:
        """Return the directory of the group of this name."""
        return self.parent / f"{PREFIX}{name}"

    def make(self, name: str, limit: int) -> Path:
        """Make the group, with a limit in bytes for memory and swap together. Raises OSError."""
        group = self.path(name)
        group.mkdir()
        if self.version == 2:
            (group / "memory.max").write_text(str(limit))
            _write_if_there(group / "memory.swap.max", "0")
        else:
            (group / "memory.limit_in_bytes").write_text(str(limit))
            _write_if_there(group / "memory.memsw.limit_in_bytes", str(limit))
        return group

    def put(self, group: Path, identity: ProcessIdentity) -> None:
        """Move that very process with all of its threads into the group. Raises OSError, NoSuchProcess."""
        move(identity, group, self.hierarchy)


def memory_groups(proc_root: Path = PROC) -> MemoryGroups:
    """Return where this process may make groups: in its own group or above it. Raises NoMemoryGroup."""
    refused = []
    for hierarchy in _hierarchies(proc_root):
        try:
            current = group_of("self", hierarchy, proc_root)
        except ProcessLookupError:  # the process is not in this group
            current = hierarchy.mount
        if ".." in current.parts:  # the group is not visible from here
            current = hierarchy.mount
        for directory in (current, *current.parents):
            if not directory.is_relative_to(hierarchy.mount):
                break
            if why := _refusal(directory, hierarchy.version):
                refused.append(why)
                continue
            return MemoryGroups(directory, hierarchy)
    raise NoMemoryGroup(refused[-1] if refused else "no control group of this machine controls memory")


def kills(group: Path) -> int | None:
    """Return the number of the group's processes that the kernel has ended for want of memory.

    None where it does not count them.
    """
    for name in ("memory.events", "memory.oom_control"):
        file = group / name
        if file.exists():
            return counts(file).get("oom_kill")
    return None


def is_memory_group(path: Path) -> bool:
    """Return whether a directory is a group made here: by its name, and by files that only the kernel puts there."""
    return path.name.startswith(PREFIX) and (path / "cgroup.procs").is_file() and (path / "memory.stat").is_file()


def _hierarchies(proc_root: Path) -> list[Hierarchy]:
    hierarchies = []
    for mount in all_mounts("self", proc_root):
        if mount.type == "cgroup" and "memory" in mount.super_options:
            hierarchies.append(Hierarchy(Path(mount.point), 1, "memory"))
        elif mount.type == "cgroup2":
            hierarchies.append(Hierarchy(Path(mount.point), 2, "memory"))
    return sorted(hierarchies, key=lambda hierarchy: hierarchy.version)


def _refusal(directory: Path, version: int) -> str | None:
    """Return why no group can be made in a directory; None when it is possible."""
    if not directory.is_dir():
        return f"{directory} is not there"
    if not os.access(directory, os.W_OK):
        return f"{directory} cannot be written"
    if version == 1:
        return None
    control = directory / "cgroup.subtree_control"
    if not control.exists() or "memory" not in control.read_text("ascii").split():
        return f"{directory} gives its groups no control of memory"
    return None


def _write_if_there(file: Path, text: str) -> None:
    if file.exists():
        file.write_text(text)
