"""Real jobs of torchrun that chaos has not started: ranks of PyTorch that train together on the CPU."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.machine.leases import Leases
from chaos.machine.linux.process import ProcessIdentity, identify, send_signal
from chaos.machine.linux.procfs import PROC, all_pids, environment
from chaos.machine.running.running import JobProcess, RunningJob, survey

WAIT_SECONDS = 600.0

SCRIPT = """
import os, sys, time
from pathlib import Path
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

class Samples(Dataset):
    def __len__(self):
        return 10**6
    def __getitem__(self, index):
        time.sleep(0.02)  # a step that leaves the machine to the others
        return torch.full((4,), index % 7 / 7), torch.ones(1)

def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    context = {"multiprocessing_context": sys.argv[1]} if len(sys.argv) > 1 else {}
    for step, (x, y) in enumerate(DataLoader(Samples(), batch_size=2, num_workers=1, **context), 1):
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.01 * parameter.grad
                parameter.grad = None
        print(f"step {step} loss {loss.item():.6f}", flush=True)
        enough = torch.tensor(float(Path("enough").exists()))
        dist.all_reduce(enough)
        if enough.item():
            break
    dist.destroy_process_group()
    print("trained to its end", flush=True)

if __name__ == "__main__":
    main()
"""
"""Data parallel training with a data worker, until a file ``enough`` appears."""


def require_torch() -> None:
    """Skip the test where PyTorch is not installed."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")


@dataclass
class Torchrun:
    """A job in a directory. ``nodes`` are its launchers, with the file of the output of each."""

    work: Path
    port: int
    nodes: list[tuple[subprocess.Popen[bytes], Path]] = field(default_factory=list)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a torchrun with its output in a file of its own; ``{port}`` in a word is the job's port."""
        output = self.work / f"torchrun_{len(self.nodes)}.out"
        # The agent's store keeps the addresses of the last generation otherwise (torch 2.13): restarts fail by chance.
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
            "GLOO_SOCKET_IFNAME": "lo",
        }
        program = (sys.executable, "-m", "torch.distributed.run")
        with output.open("wb") as stream:
            process = subprocess.Popen(
                [*program, *(word.format(port=self.port) for word in words)],
                cwd=self.work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.nodes.append((process, output))
        return process

    def job(self, ranks: int, *, instead_of: dict[int, ProcessIdentity] | None = None) -> RunningJob:
        """Return the job once so many ranks of it run, none of them the process that it was before."""
        before = set((instead_of or {}).values())

        def complete() -> RunningJob | None:
            jobs = [job for job in survey().jobs if job.ranks and job.ranks[0].directories.cwd == str(self.work)]
            assert len(jobs) < 2, [str(job) for job in jobs]
            new = bool(jobs) and before.isdisjoint(process.identity for process in jobs[0].ranks)
            return jobs[0] if new and len(jobs[0].ranks) == ranks else None

        return wait_for(f"{ranks} ranks", complete, seconds=WAIT_SECONDS, detail=self.printed)

    def printed(self) -> str:
        """Return what its launchers have printed."""
        return "\n".join(output.read_text("utf-8", "replace")[-2000:] for _, output in self.nodes)

    def trains_on(self, process: JobProcess) -> None:
        """Wait until a rank has made another step, by the file that its output goes to."""
        log = Path(f"/proc/{process.pid}/fd/1").readlink()

        def steps() -> int:
            return log.read_text("utf-8", "replace").count(" loss ")

        before = steps()
        wait_for(f"a step of {process}", lambda: steps() > before + 1, seconds=WAIT_SECONDS, detail=self.printed)

    def finish(self) -> None:
        """Let it train to its end, and wait for its launchers. They must have ended well."""
        (self.work / "enough").touch()
        for process, _ in self.nodes:
            assert process.wait(WAIT_SECONDS) == 0, self.printed()

    def left(self) -> list[int]:
        """Return the PIDs of the processes that work in the directory."""
        return [pid for pid in all_pids() if _works_in(pid, self.work)]

    def end(self) -> None:
        """End what is left of it."""
        for process, _ in self.nodes:
            process.kill()
            process.wait()
        while left := self.left():
            for pid in left:
                try:
                    send_signal(identify(pid), signal.SIGKILL)
                except LookupError:
                    continue
            wait_for("their end", lambda: not set(self.left()) & set(left), seconds=WAIT_SECONDS)


def restart_count(process: JobProcess) -> str:
    """Return what torchrun says of the rank's generation."""
    return (environment(process.pid) or {})["TORCHELASTIC_RESTART_COUNT"]


@contextmanager
def torchrun_job(work: Path) -> Iterator[Torchrun]:
    """Give a job that is to be started in the directory, and end what is left of it."""
    require_torch()
    work.mkdir(parents=True)
    (work / "train.py").write_text(SCRIPT)
    with Leases().take_ports(1) as ports:
        job = Torchrun(work, ports.numbers[0])
        try:
            yield job
        finally:
            job.end()


def _works_in(pid: int, directory: Path) -> bool:
    try:
        return (PROC / str(pid) / "cwd").readlink() == directory
    except OSError:
        return False
