"""The command of a launcher that is not msrun becomes a scenario that plans, with the words of job.command."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.base.refusal import Refused
from chaos.cli.main import entry
from chaos.init.entries import Wishes
from chaos.init.own_launch import OwnLaunch, own_launch
from chaos.init.work import WorkedOut, work_out
from chaos.scenario.load import load_scenario
from chaos.scenario.models.job import Job

TRAINS = """
import mindspore
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
model.train(1, data, callbacks=[])
"""
LAUNCHER = """
import os, subprocess, sys
for rank in range(int(sys.argv[1])):
    subprocess.Popen(sys.argv[2:], env={**os.environ, "MY_RANK": str(rank), "MY_RANKS": sys.argv[1]})
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAINS)
    (tmp_path / "launch.py").write_text(LAUNCHER)
    (tmp_path / "start.sh").write_text('for n in 0 1; do RANK=$n WORLD_SIZE=2 "$@" & done; wait\n')
    (tmp_path / "bare.py").write_text("import start_everything\n")
    return tmp_path


def launched(job: Path, text: str, ranks: int | None = None) -> tuple[WorkedOut, Job]:
    result = work_out(
        job, Wishes(fault="kill", steps=9, ranks=ranks), script=None, arguments=None, ask=None, launch=text
    )
    result.file.write_text(result.text)
    return result, load_scenario(result.file).cells[0].scenario.job


COMMANDS = {
    "mpirun --allow-run-as-root -n 4 python -u train.py --epochs 3": (
        ("mpirun", "--allow-run-as-root", "-n", "{ranks}"),
        4,
        ("--epochs", "3"),
    ),
    "mpiexec -np=2 train.py": (("mpiexec", "-np={ranks}"), 2, ()),
    "srun --ntasks=8 --nodes=1 python3.11 train.py": (("srun", "--ntasks={ranks}", "--nodes=1"), 8, ()),
    "torchrun --nproc_per_node 2 train.py": (("torchrun", "--nproc_per_node", "{ranks}", "--no-python"), 2, ()),
    "python -m torch.distributed.run --nproc-per-node=2 train.py": (
        ("python", "-m", "torch.distributed.run", "--nproc-per-node={ranks}", "--no-python"),
        2,
        (),
    ),
    "bash start.sh python train.py --epochs=1": (("bash", "start.sh"), 2, ("--epochs=1",)),
}


@pytest.mark.parametrize("text", COMMANDS)
def test_a_known_launcher_becomes_the_words_before_the_script(job: Path, text: str) -> None:
    command, ranks, arguments = COMMANDS[text]
    result, found = launched(job, text)
    assert (found.command, found.script, found.arguments) == (command, "train.py", arguments)
    assert result.draft.ranks.value == ranks and found.rank_variables == {}


def test_variables_that_only_the_launcher_knows_are_read_from_its_file(job: Path) -> None:
    result, found = launched(job, "python launch.py 3 python train.py", ranks=3)
    assert found.command == ("python", "launch.py", "{ranks}")
    assert found.rank_variables == {"MY_RANK": "MY_RANKS"} and "# CHECK: launch.py names MY_RANK" in result.text


def test_a_launcher_that_names_no_script_gets_it_behind_its_words(job: Path) -> None:
    result, found = launched(job, "python bare.py")
    assert (found.command, found.script) == (("python", "bare.py"), "train.py")
    assert result.own is not None and "nothing says how bare.py numbers its ranks" in result.own.numbering


def test_variables_before_the_command_are_the_jobs(job: Path) -> None:
    _, found = launched(job, "OMP_NUM_THREADS=2 MS_ROLE=MS_SCHED mpirun -n 2 python train.py")
    assert found.environment == {"OMP_NUM_THREADS": "2"}


def test_msrun_needs_no_command(job: Path) -> None:
    result, found = launched(job, "msrun --worker_num=4 --local_worker_num=4 train.py --epochs 2")
    assert found.command is None and result.draft.ranks.value == 4 and found.arguments == ("--epochs", "2")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("python train.py", "no launcher of ranks"),
        ('mpirun -n 2 python "train.py', "No closing quotation"),
        ("start {port} python train.py", "has braces"),
    ],
)
def test_what_is_no_launch_is_refused(job: Path, text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        own_launch(text, job, None, None)


def test_a_script_that_the_user_names_counts(job: Path) -> None:
    found = own_launch("mpirun -n 2 python train.py --config launch.py", job, Path("launch.py"), None)
    assert isinstance(found, OwnLaunch) and found.line.script == "launch.py"


def test_the_command_says_what_the_launcher_has_to_do(
    job: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(job)
    assert entry(["init", "--launch", "mpirun -n 2 python train.py", "--steps=9"]) == 0
    printed = capfd.readouterr().out
    assert "--launch: mpirun starts train.py on 2 ranks" in printed
    assert "mpirun has to start it for each rank (docs/guides/launchers.md in the repository)" in printed
    assert "starts it with msrun" not in printed


WITH_LINES = """
import argparse, os
import numpy as np
import chaos_steps
parser = argparse.ArgumentParser()
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()
done = 0
path = f"saved/rank_{os.environ['RANK']}.npz"
if args.resume:
    done = int(np.load(path)["step"])
    chaos_steps.loaded(path)
for step in range(done + 1, 13):
    chaos_steps.step_begins(step)
    chaos_steps.step_ends()
    if step % 4 == 0:
        with chaos_steps.saving(path):
            np.savez(path, step=step)
"""


def test_a_save_that_a_line_reports_needs_no_other_line(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (job / "numbers.py").write_text(WITH_LINES)
    assert entry(["init", str(job), "--launch", "sh start.sh python numbers.py"]) == 0
    printed = capfd.readouterr().out
    assert "numbers.py:17: saving (chaos_steps) every 4 steps in saved/rank_{os.environ['RANK']}.npz" in printed
    assert "numbers.py:12: loaded" in printed and "is not recorded" not in printed
    assert "set_seed" not in printed, "nothing but the script draws its weights"
    assert "imports no framework that is known here: only the lines of chaos_steps show its steps" in printed
    found = load_scenario(job / "numbers-kill.yaml").cells[0].scenario.job
    assert (found.checkpoint_interval, found.resume_arguments) == (4, ("--resume",))
