"""Running jobs of made-up processes, as msrun and torchrun start them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from chaos.machine.running.running import RunningJob, Survey, survey
from tests.unit.machine.fake_proc import FakeProc

NONE: Mapping[str, str] = MappingProxyType({})


def variables(rank: int, role: str = "MS_WORKER", port: int = 8118) -> dict[str, str]:
    """What msrun of MindSpore 2.10 gives a rank."""
    return {
        "MS_ROLE": role,
        "MS_NODE_ID": str(rank),
        "RANK_ID": str(rank),
        "RANK_SIZE": "2",
        "MS_WORKER_NUM": "2",
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": str(port),
    }


SCHEDULER = {name: value for name, value in variables(0, "MS_SCHED").items() if name != "MS_NODE_ID"}


def add_msrun(proc: FakeProc, base: int, work: Path, logs: str = "logs", launcher: bool = True) -> None:
    """What msrun starts, as it was seen: PIDs from ``base`` on; without its launcher its children are init's."""
    parent = base if launcher else 1
    if launcher:
        proc.add(base, 1, "python", "/venv/bin/msrun", "--log_dir=logs", "train.py", variables={}, cwd=work)
    proc.add(
        base + 1, parent, "python", "train.py", session=base, variables=SCHEDULER, cwd=work, log=work / logs / "s.log"
    )
    for rank in range(2):
        log = work / logs / f"worker_{rank}.log"
        own = variables(rank)
        proc.add(base + 10 * (rank + 1), parent, "python", "train.py", variables=own, cwd=work, log=log)
        if launcher:
            tail = ("/usr/bin/tail", "-f", str(log))
            proc.add(base + 10 * (rank + 1) + 1, parent, *tail, session=base, variables=own, cwd=work)


def of_torchrun(rank: int, *, each: int = 2, nodes: int = 1, other: Mapping[str, str] = NONE) -> dict[str, str]:
    """What torchrun of PyTorch 2.13 gives a rank, with ``each`` ranks on each of ``nodes`` nodes."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % each),
        "WORLD_SIZE": str(each * nodes),
        "LOCAL_WORLD_SIZE": str(each),
        "GROUP_RANK": str(rank // each),
        "GROUP_WORLD_SIZE": str(nodes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": "0",
        **other,
    }


def add_torchrun(
    proc: FakeProc,
    base: int,
    work: Path,
    *,
    node: int = 0,
    nodes: int = 1,
    logs: str = "logs",
    launcher: bool = True,
    network: str = "net:[1]",
    other: Mapping[str, str] = NONE,
) -> None:
    """What torchrun starts on a node, as it was seen: PIDs from ``base`` on; without it its children are init's."""
    if launcher:
        proc.add(base, 1, "python", "/venv/bin/torchrun", "train.py", variables={}, cwd=work, network=network)
    for local in range(2):
        own = of_torchrun(2 * node + local, nodes=nodes, other=other)
        log = work / logs / "none_ab12" / "attempt_0" / str(local) / "stdout.log"
        pid, parent = base + 10 * (local + 1), base if launcher else 1
        proc.add(pid, parent, "python", "-u", "train.py", variables=own, cwd=work, log=log, network=network)


def found(job: RunningJob) -> list[tuple[str, int | None, int]]:
    return [(process.role, process.rank, process.pid) for process in job.processes]


def look(proc: FakeProc) -> Survey:
    return survey(proc.root)
