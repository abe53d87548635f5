"""A script whose loop and saves are those of a library becomes a scenario by its launch line, and by its Trainer."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.cli.main import entry
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Scenario

LIBRARY = """
import torch
from somewhere import fit
fit()
"""

TRAINER = """
import os
import torch
from transformers import Trainer, TrainingArguments, HfArgumentParser, set_seed
from transformers.trainer_utils import get_last_checkpoint
(arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
set_seed(arguments.seed)
trainer = Trainer(model=torch.nn.Linear(1, 1), args=arguments)
trainer.train(resume_from_checkpoint=arguments.resume_from_checkpoint)
"""

FINDS = """
checkpoint = None
if os.path.isdir(arguments.output_dir):
    checkpoint = get_last_checkpoint(arguments.output_dir)
trainer.train(resume_from_checkpoint=checkpoint)
"""

LINE = "torchrun --nproc-per-node 2 train.py --output_dir out --max_steps 12 --save_steps 4"


def written(job: Path, source: str, launch: str) -> Scenario:
    (job / "train.py").write_text(source)
    assert entry(["init", str(job), "--launch", launch]) == 0
    (file,) = job.glob("*.yaml")
    return load_scenario(file).cells[0].scenario


@pytest.mark.parametrize("launcher", ["torchrun --nproc-per-node 2", "mpirun -n 2 python"])
def test_a_known_launcher_names_the_script_even_without_a_loop(tmp_path: Path, launcher: str) -> None:
    scenario = written(tmp_path, LIBRARY, f"{launcher} train.py --max_steps 30 --flag --lr=0.1")
    assert (scenario.job.script, scenario.job.steps, scenario.cluster.ranks) == ("train.py", 30, 2)


def test_the_trainers_saves_and_its_resume_are_known(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = written(tmp_path, TRAINER, LINE).job
    assert (job.steps, job.checkpoint_interval, job.seed_at_start) == (12, 4, False)
    assert job.resume_arguments == ("--resume_from_checkpoint=out/checkpoint-4",)
    said = capfd.readouterr().out
    assert "every 4 steps in out/checkpoint-{step}, on rank 0 alone" in said
    assert "neither" not in said and "no save" not in said


def test_restarts_by_the_launcher_do_not_add_the_argument(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job = written(tmp_path, TRAINER, LINE.replace("torchrun", "torchrun --max-restarts 3")).job
    assert (job.protection, job.resume_arguments) == ((), ("--resume_from_checkpoint=out/checkpoint-4",))
    said = "no restart by torchrun is planned: all would start without --resume_from_checkpoint=out/checkpoint-4"
    assert said in capfd.readouterr().out


def test_a_script_that_finds_its_checkpoint_needs_no_argument(tmp_path: Path) -> None:
    scenario = written(tmp_path, TRAINER + FINDS, LINE.replace("torchrun", "torchrun --max-restarts 3"))
    assert scenario.job.resume_arguments == ()
    assert (scenario.job.protection, scenario.job.restart_limit) == (("ELASTIC",), 3)


@pytest.mark.parametrize(
    ("options", "interval"), [("", 500), (" --save_strategy no", None), (" --save_strategy epoch", None)]
)
def test_the_trainer_saves_as_its_options_say(tmp_path: Path, options: str, interval: int | None) -> None:
    scenario = written(tmp_path, TRAINER, f"torchrun --nproc-per-node 2 train.py --max_steps 2000{options}")
    assert scenario.job.checkpoint_interval == interval
    assert (scenario.expect.resume == "none") == (interval is None)


def test_a_directory_that_an_option_reads_is_named_in_full(tmp_path: Path) -> None:
    for name in ("tokenizer", "out", "train"):
        (tmp_path / name).mkdir()
    line = f"{LINE} --tokenizer_name tokenizer --dataset=train --mode train"
    words = written(tmp_path, TRAINER, line).job.arguments
    assert words[words.index("--tokenizer_name") + 1] == str(tmp_path / "tokenizer")
    assert words[words.index("--output_dir") + 1] == "out" and words[words.index("--mode") + 1] == "train"
    assert f"--dataset={tmp_path / 'train'}" in words
