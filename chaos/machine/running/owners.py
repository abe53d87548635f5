"""The process that is the rank, among those with the rank's environment, and the evidence against it.

Every child of a rank inherits its environment, its log and, where it only forks, its command line; it lives on when the
rank has died. The kernel distinguishes a fork from a program (PF_FORKNOEXEC). The rest follows from sessions, from the
programs of the other ranks, and from whether a framework is loaded; where none of these proves anything, the process is
in doubt: it is hit only by its own PID.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.machine.job.programs import is_python, program_of
from chaos.machine.linux.procfs import Stat, command_line, kernel_lines, read_text
from chaos.machine.running.launches import Claimed, launcher_of

_LIBRARIES = (("MindSpore", "/_c_expression."), ("PyTorch", "/libtorch_python.so"))
"""Each framework with a mark of its own library. Ranks of torchrun may train with either."""


@dataclass(frozen=True)
class Doubt:
    """Why a process may be none of the ranks. ``early``: only because nothing shows yet that it is one."""

    why: str
    early: bool = False


def owners_of(claimed: Mapping[int, Claimed], proc_root: Path) -> list[int]:
    """Return the processes that have their role themselves, not from a parent or from msrun's previous child.

    A rank is a Python program or leads a session: any other process with a rank's variables has inherited them from a
    rank that is gone. So has a process that was forked and has executed nothing since, as data workers are, whatever
    its command line says. A shell or tool that runs Python programs with its own role is not the rank: they are.
    """
    tops = [pid for pid in claimed if not _inherits(pid, claimed)]
    if any(claimed[pid].claim[0] == "rank" and _leads(claimed[pid].stat) for pid in tops):
        tops = [pid for pid in tops if claimed[pid].claim[0] != "rank" or _leads(claimed[pid].stat)]
    owners = []
    for pid in tops:
        process = claimed[pid]
        programs = _programs(pid, claimed, proc_root)
        itself = not process.stat.forked and (process.claim[0] != "rank" or _leads(process.stat))
        owners += programs or ([pid] if itself else [])
    return owners


def doubts(
    ranks: Mapping[int, int | None], claimed: Mapping[int, Claimed], stats: Mapping[int, Stat], proc_root: Path
) -> dict[int, Doubt]:
    """Return why a process may be none of the ranks that it claims to be, by PID: ``ranks`` of one launch, by PID.

    There are three reasons. The process runs another program than the ranks that agree: a tool that the start script
    has called beside them, or a child of a rank. Or its session was led by a process that has died, and no other rank
    is of that session: so, as far as anybody can tell, a rank led it, as under msrun. Or nothing shows that it is a
    rank: no launcher has started it, it leads no session, and has not loaded its framework.
    """
    programs = {pid: program for pid in ranks if (program := program_of(command_line(pid, proc_root)))}
    numbers: dict[str, set[object]] = {}
    for pid, program in programs.items():
        numbers.setdefault(program, set()).add(pid if ranks[pid] is None else ("rank", ranks[pid]))
    for pid, process in claimed.items():
        if process.claim[0] == "scheduler" and (program := program_of(command_line(pid, proc_root))) in numbers:
            numbers[program].add("scheduler")
    doubts_by_pid = {}
    for pid, program in programs.items():
        others = sorted(other for other in numbers if other != program)
        if others and len(numbers[program]) == 1:
            doubts_by_pid[pid] = Doubt(
                f"it runs {program}, while other processes of that job with a rank run {', '.join(others)}"
            )
    for pid in ranks.keys() - doubts_by_pid.keys():
        stat = stats[pid]
        of_session = {ranks[rank] for rank in ranks if stats[rank].session == stat.session}
        if len(of_session) == 1 and _outlived_its_session(stat, stats):
            doubts_by_pid[pid] = Doubt(
                "who has started it has died, and so has the leader of its session, maybe the rank itself"
            )
        elif not (_led_by_its_like(pid, claimed) or launcher_of(pid, stats, proc_root)):
            libraries = _LIBRARIES if claimed[pid].by_torchrun else _LIBRARIES[:1]
            if not any(_has_loaded(pid, mark, proc_root) for _, mark in libraries):
                names = " or ".join(name for name, _ in libraries)
                why = f"no launcher has started it, it leads no session, and has not loaded {names} (yet)"
                doubts_by_pid[pid] = Doubt(why, early=True)
    return doubts_by_pid


def background_ranks(
    claimed: Mapping[int, Claimed], stats: Mapping[int, Stat], others: Iterable[int], proc_root: Path
) -> dict[int, Doubt]:
    """Return forks that may be ranks in the background: ``others`` are the processes that are none.

    Such a rank forks twice, without executing anything, and leads a session of its own or is in a session whose leader
    has ended. So, often, is a data worker of a rank that has died. A fork is proved to be one where the session is
    another living process's, where a process above it has its role, and where the session has several: a rank has
    forked all of them.
    """
    candidates = [pid for pid in others if _may_be_in_background(pid, claimed, stats, proc_root)]
    families = Counter((claimed[pid].stat.session, claimed[pid].claim) for pid in candidates)
    why = (
        "it was forked and has executed no program since: a rank that has put itself into the background, or what one "
        "that has died has left"
    )
    return {pid: Doubt(why) for pid in candidates if families[claimed[pid].stat.session, claimed[pid].claim] == 1}


def _may_be_in_background(pid: int, claimed: Mapping[int, Claimed], stats: Mapping[int, Stat], proc_root: Path) -> bool:
    stat, cmdline = claimed[pid].stat, command_line(pid, proc_root)
    if not stat.forked or not is_python(cmdline) or _is_helper(cmdline) or _inherits(pid, claimed):
        return False
    return _leads(stat) or _outlived_its_session(stat, stats)


def _is_helper(cmdline: tuple[str, ...]) -> bool:
    """Return whether it is a helper of Python's multiprocessing."""
    return any(text.startswith("from multiprocessing.") for text in cmdline[:5])


def _leads(stat: Stat) -> bool:
    return stat.session == stat.pid


def _inherits(pid: int, claimed: Mapping[int, Claimed]) -> bool:
    visited = {pid}
    parent = claimed[pid].stat.ppid
    while parent in claimed and parent not in visited:
        if claimed[parent].claim == claimed[pid].claim:
            return True
        visited.add(parent)
        parent = claimed[parent].stat.ppid
    return False


def _programs(pid: int, claimed: Mapping[int, Claimed], proc_root: Path) -> list[int]:
    """Return the first Python programs with this role at or below a process.

    Shells, ``timeout``, ``strace`` and such may stand between. A program that a script calls on its way does not count,
    nor does a helper of Python's multiprocessing, which outlives its rank.
    """
    programs = []
    waiting, visited = [pid], {pid}
    while waiting:
        current = waiting.pop()
        cmdline = command_line(current, proc_root)
        if is_python(cmdline):
            programs += [] if claimed[current].stat.forked or _is_helper(cmdline) else [current]
            continue
        below = [child for child, what in claimed.items() if what.stat.ppid == current and child not in visited]
        below = [child for child in below if claimed[child].claim == claimed[pid].claim]
        visited.update(below)
        waiting += below
    return sorted(programs)


def _led_by_its_like(pid: int, claimed: Mapping[int, Claimed]) -> bool:
    """Return whether it leads its session, or does so through the shell or tool that runs it."""
    leader = claimed.get(claimed[pid].stat.session)
    return leader is not None and leader.claim == claimed[pid].claim


def _has_loaded(pid: int, mark: str, proc_root: Path) -> bool:
    """Return whether a library is loaded, by the process's mapped files (proc(5))."""
    return any(mark in line for line in kernel_lines(read_text(pid, "maps", proc_root) or ""))


def _outlived_its_session(stat: Stat, stats: Mapping[int, Stat]) -> bool:
    """Return whether parent and leader of the session have both died. A process has its session from its parent.

    Session 0 was made outside the PID namespace: nothing is known of it.
    """
    if _leads(stat) or not stat.session or not stat.ppid:
        return False
    leader, parent = stats.get(stat.session), stats.get(stat.ppid)
    leader_lives = leader is not None and leader.start_time <= stat.start_time
    return not leader_lives and (parent is None or parent.session != stat.session)
