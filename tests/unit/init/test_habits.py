"""chaos init reads what jobs of different habits say, and the scenario that follows is accepted by the plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.init.entries import Wishes
from chaos.init.words import advice_lines, survey_lines
from chaos.init.work import WorkedOut, work_out

HABITS = Path(__file__).parents[2] / "habits"


KILL = Wishes(fault="kill")


@dataclass(frozen=True)
class Reads:
    """What is read: keys of the job, the guesses, and words of the advice and of what was found."""

    job: dict[str, Any]
    guessed: set[str]
    wishes: Wishes = KILL
    parallel: dict[str, Any] | None = None
    found: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    ranks: int = 2
    step: int = 0
    absent: tuple[str, ...] = field(default=())


NO_LAUNCH = {"cluster.ranks"}
SHARED = Wishes(fault="kill", sharded_optimizer=True)
PIPE = Wishes(fault="kill", pipeline_stages=2)

READ: dict[str, Reads] = {
    "model-train": Reads(
        {
            "script": "train.py",
            "arguments": ["--device_target=CPU", "--epoch_size", "2"],
            "resume_arguments": ["--resume=True"],
            "checkpoint_interval": 3,
            "savers": "every rank",
        },
        {"job.steps"},
        found=("run_distribute.sh:5: msrun starts train.py on 2 ranks", "train.py:63: Model.train"),
    ),
    "own-loop": Reads(
        {"script": "main.py"},
        {"job.steps", "job.checkpoint_interval"},
        found=("main.py:61: a training loop of its own", "on rank 0 alone (main.py:32)", "every epoch"),
        advice=("no line has to be added", "seems to go on without an argument"),
        absent=("savers", "resume_arguments"),
    ),
    "graph-mode": Reads(
        {"resume_arguments": ["restore"], "steps": 9, "checkpoint_interval": 3, "savers": "every rank"}, NO_LAUNCH
    ),
    "rank-0-saves": Reads(
        {"resume_arguments": ["--continue-training"], "steps": 12, "checkpoint_interval": 4},
        NO_LAUNCH,
        found=("on rank 0 alone (pretrain.py:48)",),
        absent=("savers",),
    ),
    "every-rank-saves": Reads(
        {
            "arguments": ["--out", "./saved", "--epochs", "2"],
            "resume_arguments": ["--resume_from=./saved"],
            "steps": 12,
            "checkpoint_interval": 4,
            "savers": "every rank",
        },
        {"job.resume_arguments"},
    ),
    "safetensors-files": Reads(
        {
            "steps": 10,
            "checkpoint_interval": 5,
            "resume_arguments": ["--load-checkpoint"],
            "arguments": ["--device=CPU"],
        },
        {"cluster.ranks", "job.arguments", "job.resume_arguments"},
        found=("save_checkpoint (safetensors) every 5 steps",),
    ),
    "newest-by-content": Reads(
        {"steps": 10, "checkpoint_interval": 4}, NO_LAUNCH, absent=("resume_arguments", "savers")
    ),
    "with-dropout": Reads(
        {"steps": 20, "checkpoint_interval": 5, "resume_arguments": ["--ckpt=latest"]},
        {"cluster.ranks", "job.resume_arguments"},
        advice=("train.py:21: Dropout draws at random", "chaos calibrate train-kill.yaml"),
    ),
    "mixed-precision": Reads(
        {"steps": 8, "checkpoint_interval": 3, "resume_arguments": ["--recover=1"]},
        {"cluster.ranks", "job.resume_arguments"},
    ),
    "sharded-optimizer": Reads(
        {"arguments": ["--train_steps=9"], "steps": 9, "checkpoint_interval": 3, "resume_arguments": ["--resume"]},
        set(),
        SHARED,
        parallel={"data_parallel": 2, "enable_parallel_optimizer": True},
        advice=("the script reports its steps by chaos_steps",),
    ),
    "gradient-accumulation": Reads(
        {"steps": 9, "checkpoint_interval": 3, "resume_arguments": ["--resume"]},
        NO_LAUNCH,
        advice=("the script reports its steps by chaos_steps",),
    ),
    "two-stages": Reads(
        {"steps": 8, "checkpoint_interval": 3, "resume_arguments": ["--restart"]},
        set(),
        PIPE,
        parallel={"data_parallel": 1, "pipeline_stage": 2},
        advice=("the script reports its steps by chaos_steps",),
    ),
}


def worked_out(directory: Path, wishes: Wishes) -> WorkedOut:
    return work_out(directory, wishes, script=None, arguments=None, ask=None)


def test_every_job_is_read() -> None:
    assert READ.keys() == {path.name for path in HABITS.iterdir() if path.is_dir() and path.name != "__pycache__"}


@pytest.mark.parametrize("habit", READ)
def test_a_job_is_read_as_its_source_says(habit: str) -> None:
    reads = READ[habit]
    result = worked_out(HABITS / habit, reads.wishes)
    scenario = yaml.safe_load(result.text)
    assert {key: scenario["job"].get(key) for key in reads.job} == reads.job
    assert not scenario["job"].keys() & set(reads.absent)
    assert {key for key, _ in result.draft.guesses} == reads.guessed
    assert scenario["cluster"]["ranks"] == reads.ranks
    assert scenario["cluster"].get("parallel") == reads.parallel
    interval = scenario["job"]["checkpoint_interval"]
    assert interval < scenario["faults"][0]["trigger"]["step"] < 2 * interval
    assert "expect" not in scenario
    found, advice = "\n".join(survey_lines(result.survey)), "\n".join(advice_lines(result.survey, result.draft))
    assert [words for words in reads.found if words not in found] == []
    assert [words for words in reads.advice if words not in advice] == []


def test_each_guess_and_each_reading_has_its_comment() -> None:
    text = worked_out(HABITS / "model-train", Wishes(fault="kill")).text
    assert "  steps: 9  # CHECK: nothing in the script says how many\n" in text
    assert "  checkpoint_interval: 3  # train.py:60; train.py:33, default of --save_checkpoint_steps\n" in text
    assert "  ranks: 2  # run_distribute.sh:5, msrun\n" in text


def test_a_job_without_a_word_of_data_parallelism_is_not_taken_for_it_silently() -> None:
    result = worked_out(HABITS / "two-stages", Wishes(fault="kill"))
    assert "no line says that the ranks train the same weights" in "\n".join(advice_lines(result.survey, result.draft))


def test_stages_of_a_pipeline_need_the_three_lines() -> None:
    result = worked_out(HABITS / "own-loop", PIPE)
    advice = "\n".join(advice_lines(result.survey, result.draft))
    assert "a stage may wait for another" in advice and "chaos_steps.step_begins(" in advice
