"""The jobs that run on this host, whichever process has started them, found by the variables of their launchers.

Seen with msrun of MindSpore 2.10: every rank has MS_ROLE=MS_WORKER, MS_NODE_ID, RANK_ID, MS_WORKER_NUM, MS_SCHED_HOST,
MS_SCHED_PORT and leads a session of its own; the scheduler has MS_ROLE=MS_SCHED and RANK_ID=0; a ``tail -f`` for each
rank inherits the rank's variables, and msrun itself has none of them. With ``--join=False`` msrun has ended. On several
nodes without ``--node_rank`` ranks have no MS_NODE_ID, and no RANK_ID of their own.
For torchrun see :mod:`chaos.agent.launcher.torchrun`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from chaos.agent.launcher.torchrun import MASTER, RUN_ID
from chaos.base.clock import boot_id
from chaos.base.rank_sets import spans
from chaos.machine.job.processes import RUN_VARIABLE, Role
from chaos.machine.job.programs import is_python, starts_ranks
from chaos.machine.linux.containers import Container, container_of
from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.linux.procfs import PROC, Stat, command_line, environment, living
from chaos.machine.running.directories import Directories, directories_of
from chaos.machine.running.launches import (
    Claimed,
    launcher_of,
    launches_of,
    may_have_role,
    size_of,
    with_claims,
    without_starters,
)
from chaos.machine.running.owners import Doubt, background_ranks, doubts, owners_of
from chaos.machine.running.rank_from_log import rank_from_log
from chaos.machine.running.torchrun_nodes import with_nodes_joined


@dataclass(frozen=True)
class JobProcess:
    """A process of a running job. ``run`` is its CHAOS_RUN: ``chaos run`` has started such a job.

    ``rank`` of a rank is None where nothing shows its number yet. ``doubt`` is why it may be another process than the
    rank that its environment names; empty where nothing contradicts it. ``early``: the only doubt is that nothing shows
    yet that it is a rank, as right after its start.
    """

    identity: ProcessIdentity
    ppid: int
    session: int
    role: Role
    rank: int | None
    cmdline: tuple[str, ...]
    directories: Directories
    container: Container | None = None
    run: str | None = None
    doubt: str = ""
    early: bool = False

    @property
    def pid(self) -> int:
        return self.identity.pid

    def __str__(self) -> str:
        what: str = self.role
        if self.role == "rank":
            what = "a rank, not known which" if self.rank is None else f"rank {self.rank}"
        if self.role == "other":
            what = f"{' '.join(self.cmdline)[:80]!r}, started by rank {self.rank} or for it"
        doubt = f": {self.doubt}" if self.doubt else ""
        return f"{what}: PID {self.pid}, logs in {self.directories.shown}{doubt}"


@dataclass(frozen=True)
class RunningJob:
    """One launch of a job on this host. ``size`` is the number of its ranks anywhere, None if it is unknown.

    ``processes`` are launcher, scheduler and ranks, in this order, by rank and PID. A rank that is there twice is
    listed twice. ``members`` are the PIDs of these and of their descendants. ``table`` is the rank table that its ranks
    are given. ``scheduler`` is the address of MindSpore's scheduler, ``master`` that of torchrun's store, and
    ``run_id`` torchrun's name of the job.
    """

    scheduler: str | None
    size: int | None
    processes: tuple[JobProcess, ...]
    members: frozenset[int] = frozenset()
    table: str | None = None
    master: str | None = None
    run_id: str | None = None

    @property
    def marks(self) -> tuple[object, ...]:
        """The marks that its ranks give of their job: launches with different marks never belong to the same job."""
        return self.scheduler, self.master, self.run_id, self.size

    @property
    def doubtful(self) -> bool:
        """Whether it has ranks, and none of them is beyond doubt."""
        return bool(self.ranks) and all(process.doubt for process in self.ranks)

    @property
    def left_over(self) -> bool:
        """Whether it has ranks, and each of them is, as far as anybody can tell, a leftover of ranks."""
        return self.doubtful and not any(process.early for process in self.ranks)

    @property
    def ranks(self) -> tuple[JobProcess, ...]:
        return tuple(process for process in self.processes if process.role == "rank")

    def __str__(self) -> str:
        known = [process.rank for process in self.ranks if process.rank is not None]
        unknown = ["not known"] if len(known) < len(self.ranks) else []
        numbers = ", ".join([*([spans(known)] if known else []), *unknown]) or "none"
        where, first = self._where(), (self.ranks or self.processes)[0].pid
        size = f", {self.size} ranks in all" if self.size is not None else ""
        at = f", scheduler {self.scheduler}" if self.scheduler else f", master {self.master}" if self.master else ""
        table = f", rank table {self.table}" if self.table else ""
        return f"the job with ranks {numbers} that {where}{size}{at}{table} (--job {first} names it too)"

    def _where(self) -> str:
        """Return the directory that all ranks log in, or else work in, in words; that of the first where none is."""
        first, *others = [process.directories for process in self.ranks or self.processes]
        apart = any(other.logs != first.logs for other in others)
        common = (path for path in first.above if all(path in other.above for other in others))
        if not apart or (directory := next(common, None)) is None:
            return f"logs in {first.shown}"
        return f"{'works' if directory == first.cwd else 'logs'} in {directory}"


@dataclass(frozen=True)
class Hidden:
    """A process that may be a job's and that cannot be inspected: it belongs to the user ``uid``."""

    pid: int
    ppid: int
    uid: int
    cmdline: tuple[str, ...]


@dataclass(frozen=True)
class Survey:
    """The jobs that run on this host now. ``parents`` gives every process's parent.

    ``left`` are leftovers that ranks have started before they ended: they have a rank's variables and are no ranks.
    ``forks`` are the leftovers without proof, each as a job: only its own PID can name it.
    """

    jobs: tuple[RunningJob, ...]
    hidden: tuple[Hidden, ...]
    parents: Mapping[int, int]
    left: tuple[JobProcess, ...] = ()
    forks: tuple[RunningJob, ...] = ()


def survey(proc_root: Path = PROC) -> Survey:
    """Look at every process once. Processes that end meanwhile are left out; nothing is signalled or changed."""
    stats: dict[int, Stat] = {}
    environments: dict[int, dict[str, str]] = {}
    hidden: list[Hidden] = []
    for stat, variables in living(proc_root):
        stats[stat.pid] = stat
        if variables is None:
            hidden += _hidden(stat, proc_root)
        elif stat.pid != os.getpid() and may_have_role(variables):
            environments[stat.pid] = variables
    boot = boot_id()
    claimed = without_starters(with_claims(environments, stats, proc_root), stats, proc_root)
    launches = with_nodes_joined(launches_of(claimed, stats, proc_root), stats, proc_root)
    candidates = (_job(launch, stats, boot, proc_root) for launch in launches)
    jobs = sorted(
        (job for job in candidates if job is not None), key=lambda job: [process.pid for process in job.processes]
    )
    held = {pid for job in jobs for pid in job.members}
    others = [pid for pid, member in sorted(claimed.items()) if pid not in held and member.claim[0] == "rank"]
    left = tuple(
        _describe(claimed[pid].stat, "other", claimed[pid].claim[1], claimed[pid].variables, boot, proc_root)
        for pid in others
    )
    forks = (
        _made([pid], {pid: doubt}, claimed, stats, boot, proc_root)
        for pid, doubt in background_ranks(claimed, stats, others, proc_root).items()
    )
    forks = (fork for fork in forks if not any(_replaces(job, fork) for job in jobs))
    return Survey(tuple(jobs), tuple(hidden), {pid: stat.ppid for pid, stat in stats.items()}, left, tuple(forks))


def _replaces(job: RunningJob, fork: RunningJob) -> bool:
    """Return whether the rank that a fork claims to be runs, beyond doubt, where the fork logs or works."""
    (forked,) = fork.ranks
    same = [process for process in job.ranks if process.rank == forked.rank and not process.doubt]
    return any(not forked.directories.keys.isdisjoint(process.directories.keys) for process in same)


def _job(claimed: dict[int, Claimed], stats: dict[int, Stat], boot: str, proc_root: Path) -> RunningJob | None:
    """Return the job of processes with one key; None when none of them has a role of its own."""
    owners = owners_of(claimed, proc_root)
    if not owners:
        return None
    return _made(owners, None, claimed, stats, boot, proc_root)


def _made(
    owners: list[int],
    doubt: Mapping[int, Doubt] | None,
    claimed: Mapping[int, Claimed],
    stats: Mapping[int, Stat],
    boot: str,
    proc_root: Path,
) -> RunningJob:
    """Return the job of these processes, which have roles of their own.

    Doubts about them are looked for, unless they are known.
    """
    ranks = {pid: _rank(pid, claimed[pid], proc_root) for pid in owners if claimed[pid].claim[0] == "rank"}
    doubt = doubts(ranks, claimed, stats, proc_root) if doubt is None else doubt
    processes = []
    for pid in owners:
        role = claimed[pid].claim[0]
        process = _describe(claimed[pid].stat, role, ranks.get(pid), claimed[pid].variables, boot, proc_root)
        if pid in doubt:
            process = replace(process, doubt=doubt[pid].why, early=doubt[pid].early)
        processes.append(process)
    launchers = {launcher_of(owner, stats, proc_root) for owner in owners}
    for pid in sorted(launcher for launcher in launchers if launcher is not None):
        variables = environment(pid, proc_root) or {}
        processes.append(_describe(stats[pid], "launcher", None, variables, boot, proc_root))
    order = {"launcher": 0, "scheduler": 1, "rank": 2}
    processes.sort(
        key=lambda job_process: (
            order[job_process.role],
            -1 if job_process.rank is None else job_process.rank,
            job_process.pid,
        )
    )
    any_process = claimed[owners[0]]
    size = size_of(any_process)
    tables = (claimed[owner].variables.get("RANK_TABLE_FILE") for owner in owners if claimed[owner].claim[0] == "rank")
    torchrun = any_process.by_torchrun
    return RunningJob(
        None if torchrun else _address(any_process, ("MS_SCHED_HOST", "MS_SCHED_PORT")),
        int(size) if size.isascii() and size.isdecimal() else None,
        tuple(processes),
        _members({member.pid for member in processes}, {pid: stat.ppid for pid, stat in stats.items()}),
        next(tables, None),
        _address(any_process, MASTER) if torchrun else None,
        any_process.variables.get(RUN_ID) if torchrun else None,
    )


def _address(process: Claimed, names: tuple[str, str]) -> str | None:
    """Return host and port of the variables of these names; None where one is missing."""
    host, port = map(process.variables.get, names)
    return f"{host}:{port}" if host and port else None


def _rank(pid: int, process: Claimed, proc_root: Path) -> int | None:
    """Return the process's rank, by its environment, or else by its own log."""
    if process.claim[1] is not None:
        return process.claim[1]
    container = container_of(pid, proc_root)
    own_pids = {pid} if container is None else {container.pid}
    return rank_from_log(pid, own_pids, process.stat.start_time, process.variables, proc_root)


def _describe(
    stat: Stat, role: Role, rank: int | None, variables: dict[str, str], boot: str, proc_root: Path
) -> JobProcess:
    return JobProcess(
        ProcessIdentity(stat.pid, stat.start_time, boot),
        stat.ppid,
        stat.session,
        role,
        rank,
        command_line(stat.pid, proc_root),
        directories_of(stat.pid, proc_root),
        container_of(stat.pid, proc_root),
        variables.get(RUN_VARIABLE),
    )


def _members(roots: set[int], parents: Mapping[int, int]) -> frozenset[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    members: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in members:
            members.add(pid)
            waiting += children.get(pid, ())
    return frozenset(members)


def _hidden(stat: Stat, proc_root: Path) -> Iterable[Hidden]:
    """Yield a Python program of another user's.

    Other programs are no ranks, and the kernel's own processes have no command line.
    """
    cmdline = command_line(stat.pid, proc_root)
    if not is_python(cmdline) and not starts_ranks(cmdline):
        return ()
    try:
        uid = (proc_root / str(stat.pid)).stat().st_uid
    except OSError:
        return ()
    return (Hidden(stat.pid, stat.ppid, uid, cmdline),)
