"""The search for a run's processes, by CHAOS_RUN in their environment or in a parent's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from chaos.agent.launcher.rank_variables import pairs_of, place_by
from chaos.agent.launcher.torchrun import place_below_torchrun
from chaos.base.clock import boot_id
from chaos.machine.job.programs import is_python, starts_ranks
from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.linux.procfs import PROC, Stat, command_line, environment, living, read_stat

RUN_VARIABLE = "CHAOS_RUN"
ATTEMPT_VARIABLE = "CHAOS_ATTEMPT"
NODE_VARIABLE = "CHAOS_NODE"
ROLE_VARIABLE = "CHAOS_ROLE"
"""Set by a launcher of the harness for a process beside the ranks."""

Role = Literal["rank", "scheduler", "launcher", "lighthouse", "other"]

BESIDE: tuple[Role, ...] = ("launcher", "scheduler", "lighthouse")
"""Roles of processes that are no rank and that a fault may hit."""

_NAMED: Mapping[str, Role] = MappingProxyType({"lighthouse": "lighthouse"})
"""The roles that the variable may give."""


@dataclass(frozen=True)
class FoundProcess:
    """A process of a run.

    ``rank`` is set for role "rank" only. ``attempt`` and ``part`` (the number of the node whose launcher has started
    it, where there are several) come from its environment, None if they are missing there.
    """

    identity: ProcessIdentity
    ppid: int
    session: int
    role: Role
    rank: int | None
    attempt: str | None
    cmdline: tuple[str, ...]
    part: str | None = None

    @property
    def pid(self) -> int:
        return self.identity.pid


@dataclass(frozen=True)
class _Snapshot:
    stat: Stat
    environment: dict[str, str] | None


def find_run_processes(
    run: str, *, known: Iterable[ProcessIdentity] = (), proc_root: Path = PROC
) -> list[FoundProcess]:
    """Return every living process of the run, this process excepted, in order of PID.

    A process belongs to the run if its environment holds CHAOS_RUN with exactly this value, if it is one of ``known``
    (found earlier), or if it descends from such a process without carrying another run's CHAOS_RUN.

    Roles come from the variables that msrun sets for its children (MS_ROLE, and MS_NODE_ID or RANK_ID for the rank), or
    torchrun (TORCHELASTIC_RUN_ID, LOCAL_RANK and RANK).
    Helpers of a rank inherit all of them, and so does every process that msrun starts after a worker. So a rank is a
    process whose parent is not of the same rank and, where ranks lead sessions of their own as under both, that leads
    its session. Under another launcher a shell may start each rank: there the topmost Python of a rank is the rank.
    """
    if not run:
        raise ValueError("the value of CHAOS_RUN cannot be empty")
    boot = boot_id()
    expected = {identity.pid: identity.start_time for identity in known if identity.boot == boot}
    snapshot = _snapshot(proc_root)
    roots = {
        pid
        for pid, process in snapshot.items()
        if _run_of(process) == run or expected.get(pid) == process.stat.start_time
    }
    members = _with_descendants(roots, snapshot, run, proc_root)
    processes = [_describe(snapshot[pid], boot, proc_root) for pid in sorted(members)]
    return _settle_roles(processes, {pid: snapshot[pid] for pid in members})


def runs_alive(*, proc_root: Path = PROC) -> set[str]:
    """Return the CHAOS_RUN values that living processes carry, this process excepted."""
    values = {_run_of(process) for pid, process in _snapshot(proc_root).items() if pid != os.getpid()}
    return {value for value in values if value}


def own_launchers(processes: Iterable[FoundProcess], *, proc_root: Path = PROC) -> list[FoundProcess]:
    """Return the launchers among a run's processes that are not msrun: their environment numbers no rank.

    Only the topmost count, and not what they have started.
    """
    found = list(processes)
    pids = {process.pid for process in found}
    return [process for process in found if process.ppid not in pids and _launches(process, proc_root)]


def _launches(process: FoundProcess, proc_root: Path) -> bool:
    variables = environment(process.pid, proc_root) or {}
    return "MS_ROLE" not in variables and bool(pairs_of(variables)) and place_by(variables) is None


def _snapshot(proc_root: Path) -> dict[int, _Snapshot]:
    return {stat.pid: _Snapshot(stat, variables) for stat, variables in living(proc_root)}


def _run_of(process: _Snapshot) -> str | None:
    return (process.environment or {}).get(RUN_VARIABLE)


def _with_descendants(roots: set[int], snapshot: dict[int, _Snapshot], run: str, proc_root: Path) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, process in snapshot.items():
        children.setdefault(process.stat.ppid, []).append(pid)
    members: set[int] = set()
    waiting = list(roots - {os.getpid()})
    while waiting:
        pid = waiting.pop()
        if pid in members:
            continue
        members.add(pid)
        # A PPID names the parent of that moment. It is this process only if this process is still there.
        now = read_stat(pid, proc_root)
        if now is None or now.start_time != snapshot[pid].stat.start_time:
            continue
        waiting += [
            child for child in children.get(pid, ()) if child != os.getpid() and _run_of(snapshot[child]) in (None, run)
        ]
    return members


def _describe(process: _Snapshot, boot: str, proc_root: Path) -> FoundProcess:
    pid = process.stat.pid
    identity = ProcessIdentity(pid, process.stat.start_time, boot)
    variables, cmdline = _of_one_program(process, proc_root)
    role, rank = claim_of(variables)
    # A shell's own RANK_ID reaches the launcher too, so the launcher's program counts for more than that.
    if "MS_ROLE" not in variables and starts_ranks(cmdline):
        role, rank = "launcher", None
    attempt = variables.get(ATTEMPT_VARIABLE)
    part = variables.get(NODE_VARIABLE)
    return FoundProcess(identity, process.stat.ppid, process.stat.session, role, rank, attempt, cmdline, part)


def _of_one_program(process: _Snapshot, proc_root: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the environment and the command line of the program that runs now.

    A process may execute another program after its environment was read for the snapshot. Its command line would then
    be paired with the environment of the program before, so the environment is read again until it stays the same.
    """
    variables = process.environment or {}
    while True:
        cmdline = command_line(process.stat.pid, proc_root)
        now = environment(process.stat.pid, proc_root)
        if now is None or now == variables:
            return variables, cmdline
        variables = now


def claim_of(variables: dict[str, str]) -> tuple[Role, int | None]:
    """Return the role that an environment claims, and the rank: MS_ROLE, and MS_NODE_ID or RANK_ID (MindSpore 2.10).

    Without MS_ROLE it is the rank by the variables that the launch names (CHAOS_RANKS), else by those of torchrun. A
    launcher of the harness names a process beside the ranks by CHAOS_ROLE.
    """
    role = variables.get("MS_ROLE")
    if role is None and pairs_of(variables):
        place = place_by(variables)
        named = _NAMED.get(variables.get(ROLE_VARIABLE, ""), "other")
        return (named, None) if place is None else ("rank", place[0])
    if role is None and (place := place_below_torchrun(variables)) is not None:
        return "rank", place[0]
    if role == "MS_SCHED":
        return "scheduler", None
    if role not in (None, "MS_WORKER"):
        return "other", None
    number = variables.get("MS_NODE_ID") or variables.get("RANK_ID") or ""
    return ("rank", int(number)) if number.isascii() and number.isdecimal() else ("other", None)


def running_claim(variables: dict[str, str], *, below_torchrun: bool = False) -> tuple[Role, int | None]:
    """Return the claim of a process as :func:`claim_of` does, for a job that chaos has not started.

    Without MS_ROLE a number alone is too little: many programs know a RANK_ID. With MS_ROLE, RANK_ID does not number
    the rank: on several nodes without ``--node_rank`` msrun gives its workers no MS_NODE_ID, and each worker then has
    the RANK_ID=0 of the scheduler (MindSpore 2.10). Such a worker is a rank without a number in its environment.

    ``below_torchrun``: torchrun has started the process, so its variables count for more than an inherited MS_ROLE.
    """
    role = variables.get("MS_ROLE")
    if (role is None or below_torchrun) and (place := place_below_torchrun(variables)) is not None:
        return "rank", place[0]
    if role is None and not (variables.keys() & {"MS_WORKER_NUM", "RANK_SIZE"}):
        return "other", None
    if role == "MS_WORKER":
        number = variables.get("MS_NODE_ID", "")
        return "rank", int(number) if number.isascii() and number.isdecimal() else None
    return claim_of(variables)


def _settle_roles(processes: list[FoundProcess], members: dict[int, _Snapshot]) -> list[FoundProcess]:
    """Remove roles from processes that only inherited them."""
    roles = {process.pid: (process.role, process.rank) for process in processes}
    ranks_lead_sessions = any(
        process.role == "rank" and process.session == process.pid and not _own_launcher(members[process.pid])
        for process in processes
    )
    settled = []
    starters = set(_starters(processes, roles, members))
    roles |= dict.fromkeys(starters, ("other", None))
    for process in processes:
        inherited = process.pid in starters or (
            process.role != "other" and _ancestor_claims(process.pid, roles[process.pid], roles, members)
        )
        led = process.role == "rank" and ranks_lead_sessions and process.session != process.pid
        settled.append(replace(process, role="other", rank=None) if inherited or led else process)
    return settled


def _starters(
    processes: list[FoundProcess], roles: dict[int, tuple[Role, int | None]], members: dict[int, _Snapshot]
) -> Iterator[int]:
    """Yield processes that are no Python and have one of the same rank below them, where the launcher is not msrun."""
    by_pid = {process.pid: process for process in processes}
    for process in processes:
        if process.role != "rank" or not is_python(process.cmdline) or not _own_launcher(members[process.pid]):
            continue
        pid = process.pid
        while (pid := members[pid].stat.ppid) in by_pid and roles[pid] == roles[process.pid]:
            if not is_python(by_pid[pid].cmdline):
                yield pid


def _own_launcher(process: _Snapshot) -> bool:
    return "MS_ROLE" not in (process.environment or {}) and bool(pairs_of(process.environment or {}))


def _ancestor_claims(
    pid: int, claimed: tuple[Role, int | None], roles: dict[int, tuple[Role, int | None]], members: dict[int, _Snapshot]
) -> bool:
    visited = {pid}
    while (parent := members[pid].stat.ppid) in members and parent not in visited:
        if roles[parent] == claimed:
            return True
        visited.add(parent)
        pid = parent
    return False
