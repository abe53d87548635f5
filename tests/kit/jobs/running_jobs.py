"""Jobs that run already and that chaos has not started: cheap processes with the environment that msrun gives them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chaos.base.wait import wait_for
from chaos.machine.linux.process import ProcessIdentity, identify, state
from chaos.machine.linux.procfs import environment


@dataclass
class OwnJob:
    """A job of one's own, without a launcher as after ``msrun --join=False``; ``ranks`` are processes by rank."""

    work: Path
    logs: Path
    port: int = 8118
    ranks: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, rank: int, *argv: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a rank as msrun does: in a session of its own, with its output in its log."""
        variables = {
            "PATH": os.environ["PATH"],
            "MS_ROLE": "MS_WORKER",
            "MS_NODE_ID": str(rank),
            "RANK_ID": str(rank),
            "DEVICE_ID": str(rank),
            "RANK_SIZE": "2",
            "MS_WORKER_NUM": "2",
            "MS_SCHED_HOST": "127.0.0.1",
            "MS_SCHED_PORT": str(self.port),
            **more,
        }
        with (self.logs / f"worker_{rank}.log").open("wb") as log:
            process = subprocess.Popen(
                argv or ("sleep", "1000"),
                env=variables,
                cwd=self.work,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started.append(process)
        wait_for("exec", lambda: "MS_NODE_ID" in (environment(process.pid) or {}), seconds=120)
        self.ranks[rank] = process
        return process

    def identities(self) -> dict[int, ProcessIdentity]:
        """Who its ranks are now."""
        return {rank: identify(process.pid) for rank, process in self.ranks.items()}


_LAUNCHER = """
start() {
  for rank in 0 1; do
    env MS_ROLE=MS_WORKER MS_NODE_ID=$rank RANK_ID=$rank RANK_SIZE=2 MS_WORKER_NUM=2 \\
        MS_SCHED_HOST=127.0.0.1 MS_SCHED_PORT=8118 setsid sleep 300 </dev/null >logs/worker_$rank.log 2>&1 &
  done
}
start
while read -r _; do start; done
kill $(jobs -p) 2>/dev/null
"""


@dataclass
class LaunchedJob:
    """A job whose launcher lives, and starts both ranks again when it is told to."""

    logs: Path
    launcher: subprocess.Popen[str]

    def start_again(self) -> None:
        """Let the launcher start both ranks."""
        assert self.launcher.stdin is not None
        self.launcher.stdin.write("again\n")
        self.launcher.stdin.flush()

    def end_launcher(self) -> None:
        """The launcher ends its ranks and then itself."""
        assert self.launcher.stdin is not None
        self.launcher.stdin.close()
        self.launcher.wait()


@contextmanager
def launched_job(work: Path) -> Iterator[LaunchedJob]:
    """Start a launcher that starts two ranks, and end them."""
    (work / "logs").mkdir(parents=True)
    script = work / "msrun"
    script.write_text(_LAUNCHER)
    launcher = subprocess.Popen(["sh", str(script)], stdin=subprocess.PIPE, text=True, cwd=work)
    job = LaunchedJob(work / "logs", launcher)
    try:
        yield job
    finally:
        job.end_launcher()


@contextmanager
def own_job(work: Path, *, logs: str = "logs", ranks: int = 2) -> Iterator[OwnJob]:
    """Start a job that works in one directory and logs in another below it, and end what is left of it."""
    job = OwnJob(work, work / logs)
    job.logs.mkdir(parents=True)
    try:
        for rank in range(ranks):
            job.start(rank)
        yield job
    finally:
        for process in job.started:
            process.kill()
            process.wait()


@contextmanager
def untouched_job(work: Path) -> Iterator[OwnJob]:
    """The same, for a job that must be as before whatever the block does."""
    with own_job(work) as job:
        before = job.identities()
        yield job
        assert job.identities() == before
        assert {state(identity) for identity in before.values()} == {"alive"}
