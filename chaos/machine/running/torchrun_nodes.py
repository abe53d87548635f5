"""The nodes of a torchrun job that run on this host, each with a torchrun of its own: they are one job.

Ranks of one generation have the same run id, master, size and number of nodes in their environments, and another
GROUP_RANK on each node (PyTorch 2.13). Two generations need not have the same master, and never run at the same time,
unless one of them was left behind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path

from chaos.agent.launcher.torchrun import MASTER, RUN_ID
from chaos.machine.job.processes import RUN_VARIABLE
from chaos.machine.linux.procfs import PROC, Stat
from chaos.machine.running.launches import Claimed, launcher_of, network_of

_Launch = dict[int, Claimed]
_NAMES = (RUN_ID, *MASTER, "WORLD_SIZE", "GROUP_WORLD_SIZE", RUN_VARIABLE)


def with_nodes_joined(launches: Sequence[_Launch], stats: Mapping[int, Stat], proc_root: Path = PROC) -> list[_Launch]:
    """Return the launches, those of the nodes of one job as one.

    Of two launches of the same node that of a living torchrun is the job's; where both or none live, that node's are
    not joined: it is unknown which belongs to the others.
    """
    joined: list[_Launch] = []
    by_job: dict[tuple[str, ...], list[_Launch]] = defaultdict(list)
    for launch in launches:
        job = _job(launch, proc_root)
        if job is None:
            joined.append(launch)
        else:
            by_job[job].append(launch)
    for same in by_job.values():
        while len(nodes := _one_of_each_node(same, stats, proc_root)) > 1:
            joined.append({pid: process for node in nodes for pid, process in node.items()})
            same = [launch for launch in same if launch not in nodes]
        joined += same
    return joined


def _job(launch: _Launch, proc_root: Path) -> tuple[str, ...] | None:
    """Return the marks of the job whose node a launch may be; None where torchrun has not started it."""
    pid, process = next(iter(launch.items()))
    marks = tuple(process.variables.get(name, "") for name in _NAMES)
    if not process.by_torchrun:
        return None
    return (*marks, network_of(pid, proc_root) if _is_loopback(process.variables.get(MASTER[0], "")) else "")


def _is_loopback(address: str) -> bool:
    """Return whether an address means another host in every network namespace."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address.startswith("localhost")


def _one_of_each_node(launches: Sequence[_Launch], stats: Mapping[int, Stat], proc_root: Path) -> list[_Launch]:
    by_node: dict[str, list[_Launch]] = defaultdict(list)
    for launch in launches:
        by_node[next(iter(launch.values())).variables.get("GROUP_RANK", "")].append(launch)
    chosen = []
    for same in by_node.values():
        living = [launch for launch in same if launcher_of(next(iter(launch)), stats, proc_root) is not None]
        clear = living if living else same
        chosen += clear if len(clear) == 1 else []
    return chosen
