"""A control group of the run's own with a limit of memory, version 1 or 2 (cgroups(7)).

What a process used before it came into the group is not counted there; so the limit is of what it takes from then on.
The kernel ends a process of the group that goes beyond, and nobody else: the machine's memory is not touched.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from chaos.platforms.procfs import PROC

PREFIX = "chaos-oom-"
"""How the names of such groups begin."""


class NoMemoryGroup(RuntimeError):
    """No group with a limit of memory can be made here. The text says why."""


@dataclass(frozen=True)
class MemoryGroups:
    """Where groups can be made: a directory of the hierarchy that controls memory, and its version."""

    parent: Path
    version: int

    def path(self, name: str) -> Path:
        """The directory of the group of this name."""
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


def memory_groups(proc_root: Path = PROC) -> MemoryGroups:
    """Where this process may make groups: in its own group or above it. Raises NoMemoryGroup."""
    refused = []
    for point, version in _hierarchies(proc_root):
        own = _own_group(proc_root, version)
        for directory in (point / own, *(point / own).parents):
            if not directory.is_relative_to(point):
                break
            if why := _refusal(directory, version):
                refused.append(why)
                continue
            return MemoryGroups(directory, version)
    raise NoMemoryGroup(refused[-1] if refused else "no control group of this machine controls memory")


def put(group: Path, pid: int) -> None:
    """Move a process with all of its threads into the group. Raises OSError."""
    (group / "cgroup.procs").write_text(str(pid))


def kills(group: Path) -> int | None:
    """How many processes of the group the kernel has ended for want of memory; None where it does not count them."""
    for name in ("memory.events", "memory.oom_control"):
        file = group / name
        if file.exists():
            lines = dict(line.split() for line in file.read_text("ascii").splitlines() if len(line.split()) == 2)
            return int(lines["oom_kill"]) if "oom_kill" in lines else None
    return None


def members(group: Path) -> list[int]:
    """The processes that are in the group. Raises FileNotFoundError when there is no such group."""
    return [int(line) for line in (group / "cgroup.procs").read_text("ascii").split()]


def is_memory_group(path: Path) -> bool:
    """Whether a directory is a group that was made here: by its name, and by what only the kernel puts there."""
    return path.name.startswith(PREFIX) and (path / "cgroup.procs").is_file() and (path / "memory.stat").is_file()


def _hierarchies(proc_root: Path) -> list[tuple[Path, int]]:
    found = []
    for line in (proc_root / "self" / "mountinfo").read_text("utf-8", "surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        kind, *_, options = after.split(" ")
        point = Path(before.split(" ")[4])
        if kind == "cgroup" and "memory" in options.split(","):
            found.append((point, 1))
        elif kind == "cgroup2":
            found.append((point, 2))
    return sorted(found, key=lambda one: one[1])


def _own_group(proc_root: Path, version: int) -> str:
    for line in (proc_root / "self" / "cgroup").read_text("utf-8", "surrogateescape").splitlines():
        _, controllers, path = line.split(":", 2)
        if ("memory" in controllers.split(",")) if version == 1 else not controllers:
            return path.strip("/")
    return ""


def _refusal(directory: Path, version: int) -> str | None:
    """Why no group can be made in a directory; None when one can."""
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
