"""The text of a plan says what must happen and why, and stays short at any number of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chaos.plan.describe import group, ranks
from chaos.plan.render import render, trigger_text

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

KILL = {"kind": "kill", "target": {"rank": 1}, "trigger": {"step": 6}}

EXPECTED = """\
scenario    example (example.yaml)
finding     F-07: known defect of the system under test, the run is to fail in loss
cluster     8 ranks on 1 node
job         10 steps, 4 in an epoch, a checkpoint every 5 steps, seed 1, timings fast
protection  TTP
replicas    4 groups of 2 ranks: [0, 4] [1, 5] [2, 6] [3, 7]
faults      1 fault
  kill-1: kill on rank 1, at step.begin of step 6  (line 10)
mechanism   TTP  (line 10)
checkpoint  step 5, saved by ranks 0,2-3,5  (line 12)
  ttp_saved_checkpoints-step_5/rank_0/ttp_rank_0-2_1.ckpt
  ttp_saved_checkpoints-step_5/rank_5/ttp_rank_5-2_1.ckpt
  ttp_saved_checkpoints-step_5/rank_2/ttp_rank_2-2_1.ckpt
  ttp_saved_checkpoints-step_5/rank_3/ttp_rank_3-2_1.ckpt
resume      at step 6
budget      180 s in all; detection 2, stop 5, save 15, exit 10, relaunch 60, load 60, compile 60, first step 30, \
caught up 60
baseline    auto
loss        equal bit for bit
why
  - 4 replica groups of 2 ranks: data_parallel 8 with the optimizer state sliced over 4 ranks leaves 2 ranks with \
each slice.
"""


def test_a_plan_reads_from_the_cluster_to_the_reasons(plan: Planner, sharded: dict[str, Any]) -> None:
    plan.lines = {"faults.0": 10, "faults.0.trigger": 12}
    job = {"steps_per_epoch": 4, "checkpoint_interval": 5}
    text = render(plan(KILL, cluster=sharded, job=job, finding="F-07", failing=["loss"]))
    assert text.startswith(EXPECTED)
    assert "  - The checkpoint holds step 5, so the training goes on at step 6.\n" in text
    assert text.endswith(".\n")


@pytest.mark.parametrize(
    ("finding", "told"),
    [
        (
            {"id": "F-10", "sdk": "vendor"},
            "with the vendor's SDK the run is to fail in loss",
        ),
        (
            {"id": "F-11", "always": False},
            "under test, the run may, now and then, fail in loss",
        ),
        (
            {"id": "F-06", "with_vendor": ["mechanism"]},
            "the run is to fail in loss, with the vendor's SDK in mechanism too",
        ),
    ],
)
def test_a_finding_that_not_every_run_shows_says_which(plan: Planner, finding: dict[str, Any], told: str) -> None:
    assert told in render(plan(KILL, finding=finding, failing=["loss"]))


def test_a_plan_without_faults_says_that_nothing_happens(plan: Planner) -> None:
    text = render(plan(job={"protection": ()}))
    for row in (
        "protection  none\n",
        "faults      none\n",
        "mechanism   none has to act\n",
        "checkpoint  none at the end of life\n",
        "resume      none\n",
        "replicas    1 group of 4 ranks: [0, 1, 2, 3]\n",
    ):
        assert row in text
    assert "budget" not in text


def test_an_online_repair_says_after_which_steps_the_ranks_go_on(plan: Planner) -> None:
    plan.lines = {"faults.1": 10, "faults.1.trigger": 12}
    faults = [{"kind": "uce", "target": {"rank": 1}, "trigger": {"step": step}} for step in (5, 8)]
    text = render(plan(*faults, job={"protection": ("UCE",)}))
    for row in (
        "mechanism   UCE  (line 10)\n",
        "recoveries  UCE: all ranks go on after step 4, state of rank 1 from a replica; then UCE: all ranks go on "
        "after step 7, state of rank 1 from a replica  (line 12)\n",
        "checkpoint  none at the end of life  (line 12)\n",
        "resume      none  (line 12)\n",
        "budget      20 s in all; detection 1, stop 5, repair 5, first step 15\n",
    ):
        assert row in text


def test_an_open_step_is_said_in_words(plan: Planner) -> None:
    text = render(plan({**KILL, "trigger": {"elapsed": "5s"}}, expect={"loss": {"tolerance": 0.01}}))
    assert "checkpoint  the last trained step, saved by rank 0\n" in text
    assert "resume      at the step after the checkpoint\n" in text
    assert "loss        within 0.01\n" in text


def test_a_huge_plan_is_shortened(plan: Planner) -> None:
    cluster = {"ranks": 131_072, "nodes": 16_384, "parallel": {"data_parallel": 2, "model_parallel": 65_536}}
    text = render(plan({**KILL, "target": {"node": 1}}, cluster=cluster))
    assert "131,072 ranks on 16,384 nodes" in text
    assert "65,536 groups of 2 ranks: [0, 65536] [1, 65537] [2, 65538] [3, 65539] … [65535, 131071]" in text
    assert "kill on ranks 8-15 (8 in all)" in text
    assert "  … 65,531 files more\n" in text
    assert "rank_65535/ttp_rank_65535-1_5.ckpt" in text
    assert len(text) < 5_000


def test_control_characters_of_the_file_do_not_reach_the_terminal(plan: Planner) -> None:
    text = render(plan({**KILL, "trigger": {"log": {"contains": "\x1b[2J", "rank": 2}}}, baseline="runs/\x1b]0;x"))
    assert "\x1b" not in text
    assert "when rank 2 logs" in text


@pytest.mark.parametrize(
    ("trigger", "words"),
    [
        ({"step": 3, "phase": "forward", "after": "a"}, "at forward of step 3 and after a"),
        ({"log": {"contains": "x"}}, "when a process logs 'x'"),
        ({"all": [{"elapsed": 0.2}, {"after": "b"}]}, "(0.2 s after the first step has begun) and (after b)"),
        ({"any": [{"elapsed": 90.0}, {"after": "b"}]}, "(90 s after the first step has begun) or (after b)"),
    ],
)
def test_triggers_are_said_in_words(trigger: dict[str, Any], words: str) -> None:
    assert trigger_text(trigger) == words


def test_long_lists_are_told_as_sets() -> None:
    assert ranks(range(6)) == "ranks 0-5"
    assert ranks(range(4096)) == "ranks 0-4095 (4,096 in all)"
    assert ranks([3]) == "rank 3"
    assert group(range(100)) == "[0-99]"
    assert group([0, 4]) == "[0, 4]"
    assert group(range(0, 800, 8)) == "[0,8,16,24,32,40,48,…,792]"
