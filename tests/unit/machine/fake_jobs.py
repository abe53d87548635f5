"""Running jobs of made-up processes, as msrun starts them."""

from __future__ import annotations

from pathlib import Path

from chaos.machine.running.running import RunningJob, Survey, survey
from tests.unit.machine.fake_proc import FakeProc


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


def found(job: RunningJob) -> list[tuple[str, int | None, int]]:
    return [(process.role, process.rank, process.pid) for process in job.processes]


def look(proc: FakeProc) -> Survey:
    return survey(proc.root)
