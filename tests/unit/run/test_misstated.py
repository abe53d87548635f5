"""After the fault-free run a reader is told which number of the scenario the job contradicts, and what to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.run.misstated import misstated
from tests.kit.runs.good_run import a_plan


def stated(steps: int, interval: int | None) -> Plan:
    plan = a_plan()
    return replace(
        plan,
        layout=replace(plan.layout, ranks=2),
        training=replace(plan.training, last_step=steps, checkpoint_interval=interval),
    )


def trained(*last: int, saves: Sequence[int] = ()) -> History:
    """Ranks that end after these steps; rank 0 saves after some."""
    events = [("step.end", rank, step) for rank, steps in enumerate(last) for step in range(1, steps + 1)]
    events += [("checkpoint.end", 0, step) for step in saves]
    return History(
        tuple(
            Event(name, at, at, "agent", at, "train", rank, 100, {"step": step, "kind": "periodic"}, f"x.jsonl:{at}")
            for at, (name, rank, step) in enumerate(events)
        )
    )


def test_a_job_as_the_scenario_says_it_gives_no_word() -> None:
    assert list(misstated(stated(12, 4), trained(12, 12, saves=[4, 8, 12]))) == []


def test_another_number_of_steps_is_told_with_what_to_write() -> None:
    (said,) = misstated(stated(9, None), trained(12, 12))
    assert said == "the fault-free run trains 12 steps, and job.steps says 9: write steps: 12, or mend the job"


def test_shards_are_told_with_what_to_write() -> None:
    held = tuple(
        Event("state.sharded", 0, 0, "agent", 0, "train", rank, 100, {"optimizer": False, "holders": [rank]})
        for rank in range(2)
    )
    plan = stated(12, None)
    plan = replace(plan, layout=replace(plan.layout, replica_groups=((0, 1),)))
    (said,) = misstated(plan, History((*trained(12, 12).events, *held)))
    assert said == (
        "in the fault-free run, rank 0 alone holds its shards of the state, and by the plan ranks 0-1 hold the same "
        "state: write cluster.parallel.shard: full"
    )


def test_another_interval_is_told_with_what_to_write() -> None:
    (said,) = misstated(stated(12, 4), trained(12, 12, saves=[5, 10]))
    assert "saves every 5 steps, and job.checkpoint_interval says 4: write checkpoint_interval: 5" in said


@pytest.mark.parametrize(
    ("given", "stated_timeout", "words"),
    [
        ([10.0, 10.0], 10.0, []),
        ([10.0, 10.0], None, []),
        ([None, None], 10.0, []),
        ([10.0, 60.0], 10.0, []),
        ([60.0, 60.0], 10.0, ["a timeout of 60 s, and job.torchrun.group_timeout says 10 s: write group_timeout: 60s"]),
    ],
)
def test_another_timeout_of_the_process_group_is_told(
    given: list[float | None], stated_timeout: float | None, words: list[str]
) -> None:
    ready = [
        Event("group.ready", rank, rank, "agent", rank, "train", rank, 100, {"timeout": seconds} if seconds else {})
        for rank, seconds in enumerate(given)
    ]
    told = list(misstated(stated(12, None), History((*ready, *trained(12, 12).events)), stated_timeout))
    assert len(told) == len(words)
    assert all(word in text for word, text in zip(words, told, strict=True))


@pytest.mark.parametrize(
    "baseline",
    [trained(12, 11), trained(12), trained(9, 9, saves=[4, 6]), trained(9, 9)],
    ids=["ranks disagree", "one rank only", "no regular saves", "no save"],
)
def test_what_the_ranks_do_not_show_clearly_gives_no_word(baseline: History) -> None:
    assert list(misstated(stated(9, 4), baseline)) == []
