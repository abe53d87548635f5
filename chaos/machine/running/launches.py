"""The processes of this host that are of one launch of a job: by their starter, and by the job's variables."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from chaos.agent.launcher.torchrun import MASTER, RUN_ID, place_below_torchrun
from chaos.machine.job.processes import RUN_VARIABLE, Role, running_claim
from chaos.machine.job.programs import is_python, is_torchrun, starts_ranks
from chaos.machine.linux.procfs import PROC, Stat, command_line
from chaos.machine.running.directories import FileKey, directories_of

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ash", "ksh"})
_ROLES = ("rank", "scheduler")
_TABLE = 16 * 2**20
"""Bytes that a rank table may have to be compared with others: one of 10,000 devices has 2 MB."""


@dataclass(frozen=True)
class Claimed:
    """A process whose environment claims a role.

    ``by_torchrun``: the variables of torchrun are those that say its role and its job.
    """

    stat: Stat
    variables: dict[str, str]
    claim: tuple[Role, int | None]
    by_torchrun: bool = False


@dataclass(frozen=True)
class Launch:
    """The common marks of the processes of one launch, which no other processes share.

    ``job_variables`` are the job's variables in their environments, ``table`` the rank table that its ranks are given:
    two processes that contradict each other there are of two jobs, whichever process has started them. ``starter`` is
    that process.
    """

    job_variables: tuple[str, ...]
    table: FileKey | str | None
    starter: tuple[object, ...]


def may_have_role(variables: dict[str, str]) -> bool:
    """Return whether an environment claims a role, by the variables of any launcher."""
    return running_claim(variables)[0] in _ROLES or place_below_torchrun(variables) is not None


def with_claims(
    environments: Mapping[int, dict[str, str]], stats: Mapping[int, Stat], proc_root: Path = PROC
) -> dict[int, Claimed]:
    """Return the processes whose environments claim a role.

    An environment may have the variables of two launchers: a rank has started another job, or a script below torchrun
    makes its ranks ranks of MindSpore. Those of the nearest launcher count.
    """
    claimed = {}
    for pid, variables in environments.items():
        below = False
        by_torchrun = place_below_torchrun(variables) is not None
        if by_torchrun and (launcher := launcher_of(pid, stats, proc_root)) is not None:
            below = by_torchrun = is_torchrun(command_line(launcher, proc_root))
        if (claim := running_claim(variables, below_torchrun=below))[0] in _ROLES:
            claimed[pid] = Claimed(stats[pid], variables, claim, by_torchrun)
    return claimed


def size_of(process: Claimed) -> str:
    """Return the number of the job's ranks, by the environment of one of them."""
    names = ("WORLD_SIZE",) if process.by_torchrun else ("MS_WORKER_NUM", "RANK_SIZE")
    return next(filter(None, map(process.variables.get, names)), None) or ""


def without_starters(
    claimed: Mapping[int, Claimed], stats: Mapping[int, Stat], proc_root: Path = PROC
) -> dict[int, Claimed]:
    """Return these processes without the mere starters, which have a role because all of their pod has it.

    The Ascend Operator gives each of its pods an MS_ROLE, and no number. So a launcher is left out, and so is a process
    without a number that is an ancestor of a launcher, or of a process with a number. Below a launcher a process is
    what it claims: a rank may start another job.
    """
    launchers = {pid for pid in claimed if _launches(pid, proc_root)}
    starters = set(launchers)
    for pid, process in claimed.items():
        above = _ancestors(pid, stats)
        if process.claim[1] is not None:
            starters.update(above)
        if pid in launchers or launcher_of(pid, stats, proc_root) is not None:
            starters.update(above)
    return {
        pid: process
        for pid, process in claimed.items()
        if pid not in launchers
        and (pid not in starters or process.claim[1] is not None or launcher_of(pid, stats, proc_root) is not None)
    }


def launches_of(
    claimed: Mapping[int, Claimed], stats: Mapping[int, Stat], proc_root: Path = PROC
) -> list[dict[int, Claimed]]:
    """Return these processes, those of each launch apart."""
    starters = {
        ancestor
        for pid, process in claimed.items()
        for ancestor in _claimed_above(pid, claimed)
        if claimed[ancestor].claim != process.claim
    }
    copies = _copies(claimed, proc_root)
    launches: dict[Launch, dict[int, Claimed]] = {}
    for pid, process in claimed.items():
        of = _of(pid, claimed, starters, proc_root)
        launch = _launch(of, claimed, stats, proc_root)
        launch = replace(launch, table=copies.get(launch.table, launch.table))
        launches.setdefault(launch, {})[pid] = process
    # A scheduler needs no rank table: it is of the only launch that agrees with it otherwise.
    for launch in [candidate for candidate in launches if candidate.table is None]:
        same = [candidate for candidate in launches if candidate != launch and replace(candidate, table=None) == launch]
        if len(same) == 1 and all(process.claim[0] == "scheduler" for process in launches[launch].values()):
            launches[same[0]] |= launches.pop(launch)
    return list(launches.values())


def _of(pid: int, claimed: Mapping[int, Claimed], starters: Container[int], proc_root: Path) -> int:
    """Return the program that a process is a part of: the topmost Python above it with its role, else itself.

    A rank's descendants are never of another job, whatever their environment says of a job. A shell may start any
    number of jobs, and so may a launcher, which has no role, and a process that starts others with other numbers.
    """
    of, process = pid, claimed[pid]
    for ancestor in _claimed_above(pid, claimed):
        same = claimed[ancestor].claim == process.claim and claimed[ancestor].variables.get(
            "MS_ROLE"
        ) == process.variables.get("MS_ROLE")
        if same and ancestor not in starters and is_python(command_line(ancestor, proc_root)):
            of = ancestor
    return of


def _claimed_above(pid: int, claimed: Mapping[int, Claimed]) -> list[int]:
    """Return the ancestors of this process that have a role, its parent first, up to the first without one."""
    ancestors: list[int] = []
    while (pid := claimed[pid].stat.ppid) in claimed and pid not in ancestors:
        ancestors.append(pid)
    return ancestors


def _launch(pid: int, claimed: Mapping[int, Claimed], stats: Mapping[int, Stat], proc_root: Path) -> Launch:
    """Return the launch of a process.

    The scheduler's address alone is too little: leftovers of an earlier launch have the same one. Without a launcher
    the starter is the shell, and where that has ended too, the directory that the processes log in. A shell may start
    any number of jobs, so where they have neither a scheduler nor a rank table in common, that directory counts as
    well. Ranks of torchrun have a directory each, and name their job and their node.
    """
    process, variables = claimed[pid], claimed[pid].variables
    names = (RUN_ID, *MASTER, RUN_VARIABLE) if process.by_torchrun else ("MS_SCHED_HOST", "MS_SCHED_PORT", RUN_VARIABLE)
    marks = (*(variables.get(name, "") for name in names), size_of(process))
    named = process.claim[0] == "rank" and not process.by_torchrun
    table = _table(pid, variables, proc_root) if named else None
    launcher = launcher_of(pid, stats, proc_root)
    if launcher is not None:
        return Launch(marks, table, ("launcher", launcher))
    top, parent = pid, stats[pid].ppid
    while parent in claimed and claimed[parent].claim == claimed[top].claim:
        top, parent = parent, stats[parent].ppid
    network = network_of(top, proc_root)  # 127.0.0.1 of another container is another address
    if process.by_torchrun:
        return Launch(marks, table, (network, "node", variables.get("GROUP_RANK", "")))
    shell = parent in stats and parent != 1 and stats[parent].comm in _SHELLS
    if shell and (table is not None or variables.get("MS_SCHED_HOST")):
        return Launch(marks, table, (network, "shell", parent))
    directories = directories_of(top, proc_root)
    place = directories.log_key or directories.shown
    return Launch(marks, table, (network, "shell" if shell else "directory", parent if shell else 0, place))


def launcher_of(pid: int, stats: Mapping[int, Stat], proc_root: Path = PROC) -> int | None:
    """Return the nearest ancestor that is a program that starts ranks."""
    return next((ancestor for ancestor in _ancestors(pid, stats) if _launches(ancestor, proc_root)), None)


def network_of(pid: int, proc_root: Path = PROC) -> str:
    """Return the network namespace of a process; empty where it cannot be read."""
    return _link(proc_root / str(pid) / "ns" / "net")


def _ancestors(pid: int, stats: Mapping[int, Stat]) -> list[int]:
    """Return the ancestors of this process, its parent first."""
    ancestors: list[int] = []
    while (pid := stats[pid].ppid) in stats and pid not in ancestors:
        ancestors.append(pid)
    return ancestors


def _launches(pid: int, proc_root: Path) -> bool:
    return starts_ranks(command_line(pid, proc_root))


def _copies(claimed: Mapping[int, Claimed], proc_root: Path) -> dict[FileKey | str | None, FileKey | str | None]:
    """Return rank tables that are copies of another one, each with the original.

    Only by a relative name has each rank its own. Two jobs at a time have no table in common: it names the devices.
    """
    firsts: dict[bytes, FileKey | str | None] = {}
    copies: dict[FileKey | str | None, FileKey | str | None] = {}
    for pid, process in claimed.items():
        name = PurePath(process.variables.get("RANK_TABLE_FILE") or "/")
        if process.claim[0] != "rank" or name.is_absolute():
            continue
        key = _table(pid, process.variables, proc_root)
        if key not in copies and (content := _content(pid, name, proc_root)):
            copies[key] = firsts.setdefault(hashlib.sha256(content).digest(), key)
    return copies


def _content(pid: int, name: PurePath, proc_root: Path) -> bytes:
    """Return the content of a file below the working directory of a process.

    Empty where it is no table that can be read.
    """
    try:
        descriptor = os.open(proc_root / str(pid) / "cwd" / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
            content = file.read(_TABLE + 1) if plain else b""
    except OSError:
        return b""
    return content.strip() if len(content) <= _TABLE else b""


def _table(pid: int, variables: Mapping[str, str], proc_root: Path) -> FileKey | str | None:
    """Return the rank table that a process is given, as the file itself; by its name where there is no such file.

    A relative name means another file in every directory.
    """
    name = variables.get("RANK_TABLE_FILE")
    if not name:
        return None
    place, path = proc_root / str(pid), PurePath(name)
    table = place / "root" / path.relative_to(path.anchor) if path.is_absolute() else place / "cwd" / path
    try:
        status = table.stat()
    except OSError:
        return name if path.is_absolute() else str(PurePath(_link(place / "cwd")) / path)
    return status.st_dev, status.st_ino


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:
        return ""
