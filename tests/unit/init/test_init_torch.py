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


EPOCHS = """
import argparse

import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Points(Dataset):
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return torch.ones(4) * index


def points(size):
    drawn = torch.randn(size, 4)
    return TensorDataset(drawn, drawn.sum(1))


class Training:
    def __init__(self, model, data, every):
        self.model, self.data, self.every = DDP(model), data, every
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.every = every

    def epoch(self):
        for batch in self.data:
            self.model(batch).sum().backward()
            self.optimizer.step()

    def run(self, epochs):
        for epoch in range(epochs):
            self.epoch()
            if (epoch + 1) % self.every == 0:
                torch.save({"epoch": epoch}, "last.pt")


parser = argparse.ArgumentParser()
parser.add_argument("epochs", type=int)
parser.add_argument("save_every", type=int)
parser.add_argument("--batch", type=int, default=8)
options = parser.parse_args()
data = Points(100)
loader = DataLoader(data, batch_size=options.batch, sampler=DistributedSampler(data))
Training(torch.nn.Linear(4, 1), loader, options.save_every).run(options.epochs)
"""
"""Positional arguments, epochs instead of steps, no seed: 100 samples are 7 batches of 8 for each of 2 ranks."""


@pytest.mark.parametrize(
    ("change", "steps", "interval"),
    [
        (("", ""), 42, 14),
        (("sampler=", "drop_last=True, sampler="), 36, 12),
        (("sampler=DistributedSampler(data)", "shuffle=False"), 78, 26),
        (("Points(100)", "points(80)"), 30, 10),
        (("DistributedSampler(data))", "DistributedSampler(data))\nother = DataLoader(data)"), 12, 4),
        (("Points(100)", "Points(len(loaded))"), 12, 4),
        (("return self.size", "return self.size // 2"), 12, 4),
    ],
)
def test_epochs_and_batches_give_the_steps(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], change: tuple[str, str], steps: int, interval: int
) -> None:
    source = EPOCHS.replace("class Points", "class Other") if "points(" in change[1] else EPOCHS
    source = source.replace("__len__", "length") if "points(" in change[1] else source
    (tmp_path / "train.py").write_text(source.replace(*change) if change[0] else source)
    scenario = written(tmp_path, "--launch", "torchrun --nproc-per-node=2 train.py 6 2")
    assert scenario.job.arguments == ("6", "2")
    assert (scenario.job.steps, scenario.job.checkpoint_interval) == (steps, interval)
    assert ("guessed" in capfd.readouterr().out) == (steps == 12)


def test_a_script_without_a_seed_is_seeded_and_one_with_a_seed_is_not(
    job: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not written(job, "--launch", "torchrun --nproc-per-node=2 train.py").job.seed_at_start
    (job / "train-kill.yaml").unlink()
    (tmp_path / "train.py").write_text(EPOCHS)
    assert written(tmp_path, "--launch", "torchrun --nproc-per-node=2 train.py 6 2").job.seed_at_start
    assert "no set_seed" not in capfd.readouterr().out


def test_of_several_optimizers_the_last_is_written_to_be_checked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = "        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    assert EPOCHS.count(made) == 1
    source = EPOCHS.replace(made, made + made.replace("self.optimizer", "self.other"))
    (tmp_path / "train.py").write_text(source)
    scenario = written(tmp_path, "--launch", "torchrun --nproc-per-node=2 train.py 6 2")
    assert scenario.job.step_optimizer == 2
    said = capfd.readouterr().out
    assert "job.step_optimizer: 2 (the last of 2 optimizers (train.py:" in said
    assert "unable to count the steps" not in said


def test_a_function_with_the_name_of_torch_save_is_not_called_by_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "def save(step, rank):\n"
        "    torch.save({}, f'generators-{rank}.pt')\n"
        "    if rank == 0:\n"
        "        torch.save({}, 'model.pt')\n"
        "for step in range(12):\n"
        "    model(step).backward()\n"
        "    if step % 4 == 0:\n"
        "        save(step, rank)\n"
    )
    written(tmp_path, "--launch", "torchrun --nproc-per-node 2 train.py")
    said = capfd.readouterr().out
    assert "save (torch.save) every 4 steps in generators-{rank}.pt\n" in said
    assert "save (torch.save) every 4 steps in model.pt, on rank 0 alone (train.py:4)" in said


@pytest.mark.parametrize(
    ("seeds", "at_start"),
    [
        ("torch.manual_seed(1)", False),
        ("torch.cuda.manual_seed(1)", False),
        ("g = torch.Generator().manual_seed(1)", True),
        ("g = torch.Generator()\ng.manual_seed(1)", True),
    ],
)
def test_the_seed_of_a_generator_is_not_that_of_the_weights(tmp_path: Path, seeds: str, at_start: bool) -> None:
    (tmp_path / "train.py").write_text(f"import torch\n{seeds}\nloss.backward()\n")
    assert entry(["init", str(tmp_path), "--launch", "torchrun --nproc-per-node 2 train.py"]) == 0
    (file,) = tmp_path.glob("*.yaml")
    assert load_scenario(file).cells[0].scenario.job.seed_at_start == at_start


def test_accumulated_gradients_of_pytorch_are_one_step(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    loop = "for step in range(12):\n    (loss / accumulation_steps).backward()\n    muon.step()\n"
    for imported, ask in (("torch", False), ("mindspore", True)):
        (tmp_path / "train.py").write_text(f"import {imported}\naccumulation_steps = 4\n{loop}")
        assert entry(["init", str(tmp_path), "--dry-run", "--script", "train.py"]) == 0
        said = capfd.readouterr().out
        assert ("may be unable to count the steps: gradients seem to be accumulated" in said) == ask
        assert ("no known optimizer" in said) == ask
