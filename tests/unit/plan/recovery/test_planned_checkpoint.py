"""Who saves the end-of-life checkpoint and what the files are called: the vendor's examples come out exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.checkpoints.end_of_life import directory, file_name
from chaos.plan.traits import JobTraits

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

MINDSPORE = JobTraits(frozenset({"step.begin"}), "mindspore")
MINDFORMERS = JobTraits(frozenset({"step.begin"}), "mindformers", "llama2_13b")


def kill(*ranks: int, step: int = 6) -> dict[str, Any]:
    return {"kind": "kill", "target": {"ranks": ranks}, "trigger": {"step": step}}


def test_the_documents_example_saves_step_5_on_ranks_0_2_3_and_5(plan: Planner, sharded: dict[str, Any]) -> None:
    plan.traits = MINDFORMERS
    found = plan(kill(1), cluster=sharded, job={"steps": 19, "protection": ("TTP", "UCE", "TSP")})
    assert found.layout.replica_groups == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert found.checkpoint is not None
    assert found.checkpoint.step == 5
    assert found.checkpoint.savers == (0, 5, 2, 3)
    assert set(found.checkpoint.files.values()) == {
        "checkpoint/rank_0/llama2_13b_rank_0-5_1.ckpt",
        "checkpoint/rank_2/llama2_13b_rank_2-5_1.ckpt",
        "checkpoint/rank_3/llama2_13b_rank_3-5_1.ckpt",
        "checkpoint/rank_5/llama2_13b_rank_5-5_1.ckpt",
    }
    assert found.checkpoint.directory is None
    assert found.resume.resume_step == 6


def test_one_rank_of_each_group_saves_and_any_other_survivor_may(plan: Planner, sharded: dict[str, Any]) -> None:
    found = plan(kill(1, 2, 7), cluster=sharded)
    assert found.checkpoint is not None
    assert found.checkpoint.entitled == {0: (0, 4), 5: (5,), 6: (6,), 3: (3,)}
    assert found.checkpoint.savers == (0, 5, 6, 3)


def test_four_data_parallel_ranks_save_one_file(plan: Planner) -> None:
    found = plan(kill(2), job={"steps_per_epoch": 4})
    assert found.checkpoint is not None
    assert found.checkpoint.directory == "ttp_saved_checkpoints-step_5"
    assert found.checkpoint.files == {0: "ttp_saved_checkpoints-step_5/rank_0/ttp_rank_0-2_1.ckpt"}


@pytest.mark.parametrize(
    ("step", "per_epoch", "name"),
    [(1, 10, "1_1"), (10, 10, "1_10"), (11, 10, "2_1"), (20, 10, "2_10"), (5, 1, "5_1"), (1215, 1875, "1_1215")],
)
def test_mindspore_numbers_epochs_and_their_steps_from_1(step: int, per_epoch: int, name: str) -> None:
    expected = f"ttp_saved_checkpoints-step_{step}/rank_3/ttp_rank_3-{name}.ckpt"
    assert file_name(3, step, MINDSPORE, per_epoch) == expected


def test_mindformers_counts_every_step_as_an_epoch_of_one(plan: Planner) -> None:
    assert file_name(2, 5, MINDFORMERS, 19) == "checkpoint/rank_2/llama2_13b_rank_2-5_1.ckpt"
    assert directory(5, MINDFORMERS) is None


def test_a_random_target_draws_one_seed_and_says_so(plan: Planner) -> None:
    fault = {"kind": "kill", "target": {"random": {"among": (1, 2, 3)}}, "trigger": {"step": 6}}
    found = plan(fault)
    assert plan.drawn == [7]
    assert found.faults[0].seed == 7
    rank = found.faults[0].ranks[0]
    assert f"Fault kill-1: rank {rank} drawn with seed 7." in found.explanation.reasons
    again = plan({**fault, "target": {"random": {"among": (1, 2, 3), "seed": 7}}})
    assert again.faults[0].ranks == (rank,)
    assert plan.drawn == [7]


def test_a_whole_node_may_die_when_every_group_has_a_survivor(plan: Planner) -> None:
    cluster = {"ranks": 8, "nodes": 2, "parallel": {"data_parallel": 2, "model_parallel": 4}}
    found = plan({"kind": "kill", "target": {"node": 1}, "trigger": {"step": 6}}, cluster=cluster)
    assert found.faults[0].ranks == (4, 5, 6, 7)
    assert found.checkpoint is not None and found.checkpoint.savers == (0, 1, 2, 3)
