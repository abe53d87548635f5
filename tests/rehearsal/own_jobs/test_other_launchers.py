"""The real mpirun, torchrun and srun start ranks: a kill is proven, the job goes on, and ``chaos heal`` ends all."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.machine.job.processes import find_run_processes
from tests.kit.jobs.habit_jobs import HABITS
from tests.rehearsal.kit import Chaos, Run, said

pytestmark = pytest.mark.nightly

WORDS = {
    "mpirun": ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "{ranks}"),
    "mpiexec.mpich": ("mpiexec.mpich", "-n", "{ranks}"),
    "torchrun": ("torchrun", "--nproc_per_node", "{ranks}", "--no-python"),
    "srun": ("srun", "--kill-on-bad-exit=1", "-n", "{ranks}"),
}
"""Each launcher with the words that docs/guides/launchers.md gives it."""

STAYS_ON_CORES = ("mpirun", "mpiexec.mpich", "torchrun")
"""Launchers that start the ranks themselves; srun leaves that to a daemon, which has cores of its own."""

SCENARIO = """
chaos: 1
name: other-launcher
cluster: {{ranks: 2}}
job:
  kind: plain
  command: [{words}]
  arguments: [--step-seconds={seconds}]
  steps: 8
  checkpoint_interval: 3
faults:
  - {{id: kill, kind: kill, target: {{rank: 1}}, trigger: {{step: 5, phase: forward}}}}
expect: {{mechanism: none, resume: {{step: 4}}}}
"""

SLURM = """
ClusterName=chaos
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmctldPort={first}
SlurmdPort={second}
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs=2
PartitionName=all Nodes=ALL Default=YES State=UP
"""

MEETING = """
import os
from datetime import timedelta

from mindspore.communication.management import _init_with_store
from mindspore.mint.distributed import TCPStore


def init():
    rank, size = (
        int(os.environ.get(usual) or os.environ[f"OMPI_COMM_WORLD_{short}"])
        for usual, short in (("RANK", "RANK"), ("WORLD_SIZE", "SIZE"))
    )
    store = TCPStore("127.0.0.1", PORT, world_size=size, is_master=rank == 0, timeout=timedelta(seconds=300))
    _init_with_store("mccl", timedelta(seconds=300), size, rank, store)
"""
"""How ranks of MindSpore meet on a CPU without a scheduler."""


def installed(name: str) -> None:
    """Skip the test where this launcher is not installed."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    if name == "mpirun" and "Open MPI" not in (version := output("mpirun", "--version")):
        pytest.skip(f"mpirun is not that of Open MPI: {version.splitlines()[0]}")


@pytest.fixture(params=WORDS)
def launcher(request: pytest.FixtureRequest) -> str:
    """A launcher that is installed; Slurm has its daemons."""
    name: str = request.param
    installed(name)
    if name == "srun":
        request.getfixturevalue("slurm")
    return name


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Slurm of one node, for this test alone."""
    for program in ("slurmctld", "slurmd"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if os.geteuid() != 0:
        pytest.skip("slurmd needs root, which this process is not")
    configuration = tmp_path / "slurm.conf"
    host = socket.gethostname().partition(".")[0]
    first, second = free_ports(2)
    configuration.write_text(SLURM.format(host=host, place=tmp_path, first=first, second=second))
    monkeypatch.setenv("SLURM_CONF", str(configuration))
    (tmp_path / "state").mkdir()
    (tmp_path / "spool").mkdir()
    daemons = [
        subprocess.Popen([program, "-D", "-f", configuration], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for program in ("slurmctld", "slurmd")
    ]
    try:
        wait_for("an idle node", lambda: output("sinfo", "-h", "-o", "%T").strip() == "idle", seconds=60.0)
        yield
    finally:
        for daemon in reversed(daemons):
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(60)


def output(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def scenario(directory: Path, launcher: str, seconds: float) -> Path:
    words = ", ".join(f'"{word}"' for word in WORDS[launcher])
    path = directory / "other-launcher.yaml"
    path.write_text(SCENARIO.format(words=words, seconds=seconds))
    return path


def temporary() -> set[str]:
    """Return what the launchers have in the directory for temporary files."""
    patterns = ("ompi.*/*", "ompi.[0-9]*", "prte.*", "pmix*", "torchelastic_*")
    return {str(path) for pattern in patterns for path in Path(tempfile.gettempdir()).glob(pattern)}


def left(run: Run, launcher: str) -> list[str]:
    """Return what is left of a run, and its jobs in Slurm."""
    if launcher == "srun":
        wait_for("no job in Slurm", lambda: not output("squeue", "-h"), seconds=60.0)
    return run.left()


def test_a_killed_rank_is_proven_and_the_job_goes_on(launcher: str, fresh: Chaos, tmp_path: Path) -> None:
    before = temporary()
    done = fresh.run(scenario(tmp_path, launcher, 0.01))
    assert done.code == 0, done.errors + said(
        [check for check in done.run.result["checks"] if check["verdict"] != "pass"]
    )
    history = done.run.history
    end = history.first("rank.exit", attempt="train", rank=1)
    assert end is not None and end.data["signal"] == signal.SIGKILL
    first = history.first("step.begin", attempt="resume", rank=1)
    assert first is not None and first.data["step"] == 4
    assert left(done.run, launcher) == [] and temporary() == before


@pytest.mark.parametrize("moment", ["attempt.start", "step.begin", "fault.landed"])
def test_nothing_is_left_after_sigkill_and_heal(launcher: str, moment: str, fresh: Chaos, tmp_path: Path) -> None:
    before = temporary()
    harness = fresh.start_run(scenario(tmp_path, launcher, 0.5))
    run = harness.run("other-launcher")
    harness.event(run, moment)
    if moment == "step.begin" and launcher in STAYS_ON_CORES:
        ranks = [process for process in find_run_processes(run.token) if process.role == "rank"]
        cores = {frozenset(os.sched_getaffinity(process.pid)) for process in ranks}
        assert len(ranks) == 2 and [len(alike) for alike in cores] == [1]  # --cores 1
    harness.signal(signal.SIGKILL)
    harness.end()
    healed = fresh.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    assert left(run, launcher) == [] and temporary() == before
    assert fresh.heal().json["runs"] == []


@pytest.mark.parametrize(
    "line", ["mpirun --allow-run-as-root --oversubscribe -n 2 python main.py", "torchrun --nproc_per_node=2 main.py"]
)
def test_the_line_of_a_job_with_mindspore_goes_from_init_to_pass(line: str, fresh: Chaos, tmp_path: Path) -> None:
    installed(line.split()[0])
    job = tmp_path / "job"
    shutil.copytree(HABITS / "own-loop", job)
    script = (job / "main.py").read_text()
    changed = script.replace("import get_rank, init\n", "import get_rank\n").replace(
        "from model", "from meeting import init\nfrom model"
    )
    (job / "main.py").write_text(changed)
    (job / "meeting.py").write_text(MEETING.replace("PORT", str(free_ports(1)[0])))
    made = fresh("init", job, "--launch", line, "--steps=20", "--checkpoint-interval=5")
    assert made.code == 0, made
    (made_scenario,) = job.glob("*-kill.yaml")
    assert fresh("plan", made_scenario).code == 0
    done = fresh.run(made_scenario)
    assert done.code == 0, done
    first = done.run.history.first("step.begin", attempt="resume", rank=1)
    assert first is not None and first.data["step"] == 6
