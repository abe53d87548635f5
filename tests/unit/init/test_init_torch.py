"""A script of PyTorch becomes a scenario of the job kind torch, with its saves, its interval and its resume."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chaos.cli.main import entry
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Scenario
from tests.kit.shipped import SHIPPED


@pytest.fixture
def job(tmp_path: Path) -> Path:
    shutil.copy(SHIPPED / "torch" / "jobs" / "train_ddp.py", tmp_path / "train.py")
    return tmp_path


def written(job: Path, *arguments: str) -> Scenario:
    assert entry(["init", str(job), *arguments]) == 0
    (file,) = job.glob("*.yaml")
    return load_scenario(file).cells[0].scenario


def test_the_save_of_rank_0_and_the_load_are_found(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scenario = written(job, "--launch", "torchrun --nproc-per-node 4 train.py --steps 24 --save-every=6")
    assert (scenario.job.kind, scenario.job.command, scenario.cluster.ranks) == ("torch", None, 4)
    assert (scenario.job.steps, scenario.job.checkpoint_interval, scenario.job.savers) == (24, 6, None)
    assert scenario.expect.resume != "none"
    said = capfd.readouterr().out
    assert "save (torch.save) every 6 steps in checkpoints/step-{step}.tmp, on rank 0 alone" in said
    assert "chaos_steps" not in said


def test_a_shell_script_that_calls_torchrun_is_the_launch_line(job: Path) -> None:
    (job / "run.sh").write_text("torchrun --nproc_per_node 2 train.py --steps 12\n")
    scenario = written(job)
    assert (scenario.job.kind, scenario.job.command, scenario.cluster.ranks) == ("torch", None, 2)


def test_options_that_the_kind_does_not_set_keep_the_launcher(job: Path) -> None:
    scenario = written(job, "--launch", "torchrun --nproc-per-node 4 --rdzv-id 3 train.py")
    assert scenario.job.kind == "torch"
    assert scenario.job.command == ("torchrun", "--nproc-per-node", "{ranks}", "--rdzv-id", "3", "--no-python")
    assert scenario.job.protection == ()


@pytest.mark.parametrize("save_every", [2, 4, 6])
def test_restarts_by_torchrun_are_planned_and_the_last_rank_is_hit(
    job: Path, capfd: pytest.CaptureFixture[str], save_every: int
) -> None:
    launch = f"torchrun --nproc-per-node 4 --max-restarts 3 train.py --steps 12 --save-every={save_every}"
    scenario = written(job, "--launch", launch)
    assert (scenario.job.protection, scenario.job.restart_limit, scenario.job.command) == (("ELASTIC",), 3, None)
    (file,) = job.glob("*.yaml")
    capfd.readouterr()
    assert entry(["plan", str(file)]) == 0
    planned = capfd.readouterr().out
    assert f"he last periodic checkpoint holds step {save_every}" in planned
    assert "kill on rank 3" in planned


def test_a_shell_script_may_say_how_often(job: Path) -> None:
    (job / "run.sh").write_text("python -m torch.distributed.run --nproc_per_node=2 --max_restarts=2 train.py\n")
    scenario = written(job)
    assert (scenario.job.protection, scenario.job.restart_limit) == (("ELASTIC",), 2)


def test_a_job_that_saves_in_every_step_is_started_again_by_the_harness(job: Path) -> None:
    launch = "torchrun --nproc-per-node 4 --max-restarts 3 train.py --steps 12 --save-every=1"
    scenario = written(job, "--launch", launch)
    assert scenario.job.protection == ()
    assert scenario.expect.resume != "none"


@pytest.mark.parametrize(("text", "warned"), [("", True), (", find_unused_parameters=True", False)])
def test_buckets_that_ddp_makes_anew_are_a_sign_of_noise(
    job: Path, capfd: pytest.CaptureFixture[str], text: str, warned: bool
) -> None:
    script = job / "train.py"
    script.write_text(script.read_text().replace(", find_unused_parameters=True", text))
    written(job, "--launch", "torchrun --nproc-per-node 4 train.py")
    assert ("sums gradients in another order" in capfd.readouterr().out) == warned


def test_torch_alone_makes_a_save_of_that_name(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (job / "train.py").write_text(
        "import torch\nopt = torch.optim.SGD(p)\nfor step in range(12):\n    loss.backward()\n    opt.step()\n"
        "    figure.save('a.png')\n"
    )
    scenario = written(job)
    assert scenario.job.checkpoint_interval is None
    assert "no save of a checkpoint was found" in capfd.readouterr().out
