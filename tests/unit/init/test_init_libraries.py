"""A script that leaves its saves to Lightning or to accelerate becomes a scenario that goes on from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.cli.main import entry
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Scenario

LIGHTNING = """
import argparse
import {library} as L
import torch
from {library}{callbacks} import ModelCheckpoint
parser = argparse.ArgumentParser()
parser.add_argument("--max_steps", type=int, default=12)
parser.add_argument("--from_checkpoint")
arguments = parser.parse_args()
L.seed_everything(1)
data = torch.utils.data.TensorDataset(torch.randn(64, 4))
loader = torch.utils.data.DataLoader(data, batch_size=8)
trainer = L.Trainer({trainer}, callbacks=[ModelCheckpoint({saves})])
trainer.fit(Net(), loader, ckpt_path={path})
"""

STEPS = 'dirpath="saved", every_n_train_steps=4, save_last=True'


def lightning(
    saves: str = STEPS,
    path: str = "'last'",
    trainer: str = "max_steps=arguments.max_steps",
    library: str = "lightning",
    callbacks: str = ".pytorch.callbacks",
) -> str:
    return LIGHTNING.format(saves=saves, path=path, trainer=trainer, library=library, callbacks=callbacks)


ACCELERATE = """
import argparse
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
parser = argparse.ArgumentParser()
parser.add_argument("--resume_from_checkpoint")
parser.add_argument("--save_steps", type=int, default=4)
parser.add_argument("--max_steps", type=int, default=12)
arguments = parser.parse_args()
accelerator = Accelerator()
set_seed(1)
if arguments.resume_from_checkpoint:
    accelerator.load_state({loads})
for step in range(1, arguments.max_steps + 1):
    accelerator.backward(model(batch))
    optimizer.step()
    if step % arguments.save_steps == 0:
        accelerator.save_state(f"out/step_{{step}}")
"""

FABRIC = """
import os
import lightning as L
import torch
fabric = L.Fabric(accelerator="cpu", devices=2)
fabric.seed_everything(1)
if os.path.exists("saved/last.ckpt"):
    fabric.load("saved/last.ckpt", state)
for step in range(1, 13):
    fabric.backward(loss)
    optimizer.step()
    if step % 4 == 0:
        fabric.save("saved/last.ckpt", state)
"""

LINE = "torchrun --nproc-per-node 2 --max-restarts 3 train.py"


def written(job: Path, source: str, line: str = LINE) -> Scenario:
    (job / "train.py").write_text(source)
    assert entry(["init", str(job), "--launch", line]) == 0
    (file,) = job.glob("*.yaml")
    return load_scenario(file).cells[0].scenario


@pytest.mark.parametrize(
    ("library", "callbacks"), [("lightning", ".pytorch.callbacks"), ("pytorch_lightning", ".callbacks")]
)
def test_the_saves_of_lightning_are_those_of_its_callback(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], library: str, callbacks: str
) -> None:
    scenario = written(tmp_path, lightning(library=library, callbacks=callbacks))
    job = scenario.job
    assert (job.steps, job.checkpoint_interval, job.savers, job.seed_at_start) == (12, 4, None, False)
    assert (job.resume_arguments, job.protection, scenario.expect.resume) == ((), ("ELASTIC",), None)
    said = capfd.readouterr().out
    assert "ModelCheckpoint (Lightning) every 4 steps in saved/" in said
    assert "Model.train" not in said and "never loads" not in said


@pytest.mark.parametrize(
    ("saves", "interval"),
    [('dirpath="saved"', 4), ('dirpath="saved", every_n_epochs=2', 8), ("train_time_interval=t", 4)],
)
def test_lightning_saves_at_the_end_of_an_epoch_unless_it_is_said(tmp_path: Path, saves: str, interval: int) -> None:
    """64 samples in batches of 8 on 2 ranks, of which each gets its share; of a time nothing is known."""
    job = written(tmp_path, lightning(saves, trainer="max_epochs=3")).job
    assert (job.steps, job.checkpoint_interval) == (12, interval)


def test_the_option_of_lightnings_resume_is_known(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = written(tmp_path, lightning(path="arguments.from_checkpoint")).job
    assert (job.resume_arguments, job.protection) == (("--from_checkpoint=last",), ())
    assert "no restart by torchrun is planned" in capfd.readouterr().out


def test_a_fit_without_a_checkpoint_does_not_go_on(tmp_path: Path) -> None:
    assert written(tmp_path, lightning(path="None")).expect.resume == "none"


def test_the_saves_and_loads_of_a_fabric_are_known(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = written(tmp_path, FABRIC).job
    assert (job.steps, job.checkpoint_interval, job.savers, job.protection) == (12, 4, None, ("ELASTIC",))
    assert "save (Lightning) every 4 steps in saved/last.ckpt" in capfd.readouterr().out


def test_a_save_of_another_object_is_none_of_a_fabric(tmp_path: Path) -> None:
    assert written(tmp_path, FABRIC.replace("fabric.save(", "plot.save(")).job.checkpoint_interval is None


def test_the_states_of_accelerate_are_saves_and_loads(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = written(tmp_path, ACCELERATE.format(loads="arguments.resume_from_checkpoint")).job
    assert (job.steps, job.checkpoint_interval, job.savers) == (12, 4, None)
    assert job.resume_arguments == ("--resume_from_checkpoint=out/step_4",)
    said = capfd.readouterr().out
    assert "save_state (accelerate) every 4 steps in out/step_{step}" in said


@pytest.mark.parametrize("word", ["latest", "auto", "LAST"])
def test_a_line_that_names_the_newest_checkpoint_needs_no_other(tmp_path: Path, word: str) -> None:
    source = ACCELERATE.format(loads="newest(arguments.resume_from_checkpoint)")
    job = written(tmp_path, source, f"{LINE} --resume_from_checkpoint {word}").job
    assert (job.resume_arguments, job.protection) == ((), ("ELASTIC",))


def test_a_method_of_that_name_of_another_library_is_no_save(tmp_path: Path) -> None:
    source = ACCELERATE.format(loads="path").replace("from accelerate import", "from another import")
    source = source.replace("from accelerate.utils", "from another")
    assert written(tmp_path, source).job.checkpoint_interval is None
