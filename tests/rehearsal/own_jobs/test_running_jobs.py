"""A real msrun job that chaos has not started: ranks of it are killed, suspended and continued; the rest goes on.

The ranks train with MindSpore, each by itself: what a job with collectives makes of such a fault is its own affair.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.history.reader import read_history
from chaos.machine.leases import Leases
from chaos.machine.linux.children import ExitStatus, collect, subreaper
from chaos.machine.linux.process import ProcessIdentity, send_signal, state
from chaos.machine.running.running import RunningJob, survey
from tests.kit.jobs.running_jobs import own_job
from tests.rehearsal.kit import WAIT_SECONDS, Chaos, Run

SCRIPT = """
import os, sys, time
if os.environ["MS_ROLE"] == "MS_SCHED":
    sys.exit()
from pathlib import Path
import numpy
from mindspore import dataset, nn, set_device
from mindspore.train import Callback, CheckpointConfig, LossMonitor, Model, ModelCheckpoint

class Enough(Callback):
    def on_train_step_end(self, run_context):
        if Path("enough").exists():
            run_context.request_stop()

class Samples:
    def __len__(self):
        return 10**6
    def __getitem__(self, index):
        time.sleep(0.02)  # a step that leaves the machine to the others
        return numpy.ones(4, numpy.float32), numpy.ones(1, numpy.float32)

set_device("CPU")
net = nn.Dense(4, 1)
data = dataset.GeneratorDataset(Samples(), ["x", "y"], shuffle=False).batch(2)
model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01))
saves = ModelCheckpoint("own", f"saved/rank_{os.environ['RANK_ID']}", CheckpointConfig(10, keep_checkpoint_max=1000))
model.train(1, data, [LossMonitor(1), Enough(), saves], dataset_sink_mode=False)
print("trained to its end", flush=True)
os._exit(0)
"""
RANKS = 3


@dataclass(frozen=True)
class Msrun:
    """A job under msrun in a directory."""

    work: Path
    ranks: dict[int, ProcessIdentity]

    def lines(self, rank: int) -> list[str]:
        return (self.work / "logs" / f"worker_{rank}.log").read_text("utf-8", "replace").splitlines()

    def losses(self, rank: int) -> int:
        return sum("loss is" in line for line in self.lines(rank))

    def trains_on(self, rank: int) -> None:
        """Wait until the rank has made another step."""
        before = self.losses(rank)
        wait_for(f"a step of rank {rank}", lambda: self.losses(rank) > before + 1, seconds=WAIT_SECONDS)


@pytest.fixture
def msrun(tmp_path: Path) -> Iterator[Msrun]:
    """The ranks become children of this process when msrun ends, so that it can say how they ended."""
    work = tmp_path / "job"
    work.mkdir()
    (work / "train.py").write_text(SCRIPT)
    python = Path(sys.executable).parent
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",
    }
    ranks: dict[int, ProcessIdentity] = {}
    with subreaper(), Leases().take_ports(1) as ports:
        counts = (f"--worker_num={RANKS}", f"--local_worker_num={RANKS}", f"--master_port={ports.numbers[0]}")
        try:
            command = [str(python / "msrun"), *counts, "--join=False", "--log_dir=logs", "train.py"]
            subprocess.run(command, cwd=work, env=environment, check=True, stdout=subprocess.DEVNULL)
            job = wait_for("the ranks", lambda: found(work), seconds=WAIT_SECONDS)
            ranks |= {process.rank: process.identity for process in job.ranks if process.rank is not None}
            started = Msrun(work, ranks)
            for rank in ranks:
                started.trains_on(rank)
            yield started
        finally:
            left = {
                process.identity
                for job in survey().jobs
                for process in job.processes
                if process.directories.cwd == str(work)
            }
            for identity in left | set(ranks.values()):
                if state(identity) in ("alive", "stopped"):
                    send_signal(identity, signal.SIGKILL)
                end_of(identity)


def end_of(identity: ProcessIdentity) -> ExitStatus:
    return wait_for("its end", lambda: collect(identity), seconds=WAIT_SECONDS)


def found(work: Path) -> RunningJob | None:
    jobs = [job for job in survey().jobs if job.ranks and job.ranks[0].directories.logs == str(work / "logs")]
    return jobs[0] if jobs and len(jobs[0].ranks) == RANKS else None


@pytest.mark.nightly
def test_named_ranks_are_hit_and_undone_and_nothing_else_is(fresh: Chaos, msrun: Msrun, tmp_path: Path) -> None:
    with own_job(tmp_path / "bystander") as bystander:
        before = bystander.identities()
        logs = msrun.work / "logs"
        watch = fresh.start("watch", "--job", logs, "--json")
        watch.until("its first look", lambda: "rank.found" in watch.output)

        done = fresh("inject", "suspend", "--rank", "2", "--job", logs, "--for", "1s", "--json", *at(fresh))
        assert (done.code, done.json["outcome"], done.json["undone"]) == (0, "landed", True), done.errors
        msrun.trains_on(2)

        harness = fresh.start("inject", "suspend", "--rank", "0", "--job", logs, "--json", *at(fresh))
        harness.until("the suspension", lambda: state(msrun.ranks[0]) == "stopped")
        harness.signal(signal.SIGKILL)
        harness.process.wait()
        assert state(msrun.ranks[0]) == "stopped"
        healed = fresh.heal()
        assert (healed.code, len(healed.json["runs"])) == (0, 1), healed.output
        msrun.trains_on(0)

        done = fresh("inject", "kill", "--rank", "1", "--job", msrun.work, "--json", *at(fresh))
        assert (done.code, done.json["outcome"]) == (0, "landed"), done.output + done.errors
        history = read_history(Path(done.json["directory"]) / "history")
        landed = history.first("fault.landed")
        assert landed is not None and landed.data["evidence"][0]["signal"] == 9
        watch.until("the death", lambda: '"rank.exit"' in watch.output)  # while its zombie is there, on any kernel
        assert collect(msrun.ranks[1]) == ExitStatus(signal=9)

        msrun.trains_on(0)
        msrun.trains_on(2)
        (msrun.work / "enough").touch()
        for rank in (0, 2):
            assert end_of(msrun.ranks[rank]) == ExitStatus(code=0), msrun.lines(rank)[-5:]
        seen = [json.loads(line) for line in watch.end().output.splitlines()]
        ends = [(record["rank"], record["signal"]) for record in seen if record["event"] == "rank.exit"]
        assert ends[0] == (1, 9)
        losses = [one["fields"]["loss"] for one in seen if one.get("kind") == "train.loss"]
        assert losses and all(isinstance(loss, float) for loss in losses)
        assert seen[-1]["event"] == "job.end"
        assert bystander.identities() == before
        assert {state(identity) for identity in before.values()} == {"alive"}


def test_a_checkpoint_is_damaged_while_the_job_trains_and_put_back_also_by_heal(fresh: Chaos, msrun: Msrun) -> None:
    saved = msrun.work / "saved" / "rank_1"
    wait_for("a checkpoint", lambda: sorted(saved.glob("*.ckpt")), seconds=WAIT_SECONDS)
    call = ("inject", "truncate-checkpoint", "--rank", "1", "--job", msrun.work / "logs", "--json", *at(fresh))
    done = fresh(*call, "--for", "1s")
    assert (done.code, done.json["outcome"], done.json["undone"]) == (0, "landed", True), done.errors
    assert restored(msrun, Run(Path(done.json["directory"])))

    before = fresh.runs()
    harness = fresh.start(*call)
    run = harness.until(
        "its run", lambda: next((candidate for candidate in fresh.runs() if candidate not in before), None)
    )
    harness.event(run, "fault.landed")
    harness.signal(signal.SIGKILL)
    harness.process.wait()
    assert not restored(msrun, run)
    healed = fresh.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    assert restored(msrun, run)

    for rank in range(RANKS):
        msrun.trains_on(rank)
    (msrun.work / "enough").touch()
    for rank in range(RANKS):
        assert end_of(msrun.ranks[rank]) == ExitStatus(code=0), msrun.lines(rank)[-5:]


def restored(msrun: Msrun, run: Run) -> bool:
    """Whether the file that was hit holds what it did before; else it holds what it did after."""
    (landed,) = run.history.select("fault.landed")
    (shown,) = landed.data["evidence"]
    assert shown["file"].startswith("saved/rank_1/") and shown["before"] != shown["after"]
    now = hashlib.sha256((msrun.work / shown["file"]).read_bytes()).hexdigest()
    assert now in (shown["before"], shown["after"])
    return bool(now == shown["before"])


def stopped_in(output: str) -> set[int]:
    """The ranks that a watch has seen stopped, by its whole lines so far."""
    lines = [json.loads(line) for line in output.splitlines(keepends=True) if line.endswith("\n")]
    return {record["rank"] for record in lines if record["event"] == "rank.stopped"}


def at(chaos: Chaos) -> tuple[str | Path, ...]:
    return "--reports", chaos.reports
