"""A spike scales one rank's gradients so that the norm over all ranks is what the scenario says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.record import Record
from chaos.rehearsal.device.communication_errors import CommunicationAborted
from chaos.rehearsal.device.communicator import Communicator
from chaos.rehearsal.in_rank.spikes import Spikes

SECONDS = 30.0


class OneAnswer:
    """A harness that answers every barrier alike."""

    def __init__(self, **answer: Any) -> None:
        self.answer = {"message": "alter", "repeat": 0, **answer}

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        return self.answer


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as made:
        yield made


@pytest.fixture
def ranks(tmp_path: Path, pool: ThreadPoolExecutor) -> list[Communicator]:
    made = [
        Communicator(one, range(4), str(tmp_path), b"s", limit_seconds=SECONDS, on_refused=print) for one in range(4)
    ]
    for joined in [pool.submit(communicator.join) for communicator in made]:
        joined.result(SECONDS)
    return made


def gradients(rank: int) -> Any:
    return numpy.random.Generator(numpy.random.PCG64(rank)).normal(size=100).astype("float32")


def rank_with(tmp_path: Path, **answer: Any) -> tuple[Barriers, Spikes]:
    """A rank that is held in step 5 and told to alter its gradients."""
    record = Record(str(tmp_path), run="run", attempt="train", rank=1)
    armed = [{"fault": "spike", "step": 5, "phase": "allreduce.enter"}]
    barriers = Barriers(record, OneAnswer(**answer), armed)  # type: ignore[arg-type]
    return barriers, Spikes(barriers, record)


def recorded(tmp_path: Path) -> list[dict[str, Any]]:
    lines = next(tmp_path.glob("train-rank_1-*.jsonl")).read_bytes().rstrip(b"\0").splitlines()
    return [event for line in lines if (event := json.loads(line))["event"] == "fault.scaled"]


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("norm", [7.5, 1000.0])
def test_the_norm_over_all_ranks_is_the_one_asked_for(
    tmp_path: Path, ranks: list[Communicator], pool: ThreadPoolExecutor, norm: float, mean: bool
) -> None:
    norm = norm if mean else norm * 4
    barriers, spikes = rank_with(tmp_path, norm=norm)
    others = [pool.submit(ranks[rank].all_reduce, gradients(rank)) for rank in (0, 2, 3)]
    barriers.step = 5
    barriers.reach("allreduce.enter")
    own = spikes.apply(gradients(1), ranks[1].expected, share=0.25 if mean else 1.0)
    total = ranks[1].all_reduce(own)
    reduced = total / 4 if mean else total
    assert numpy.linalg.norm(reduced.astype("float64")) == pytest.approx(norm, rel=1e-5)
    for other in others:
        assert other.result(SECONDS).tobytes() == total.tobytes()
    (event,) = recorded(tmp_path)
    assert (event["fault"], event["step"], event["phase"], event["norm"]) == ("spike", 5, "allreduce.enter", norm)
    assert own == pytest.approx(gradients(1) * event["factor"])


def test_in_a_group_only_its_members_are_waited_for(ranks: list[Communicator], pool: ThreadPoolExecutor) -> None:
    other = pool.submit(ranks[3].all_reduce, gradients(3), (1, 3))
    (given,) = ranks[1].expected(gradients(1), (1, 3))
    assert (given == gradients(3)).all()
    assert (ranks[1].all_reduce(gradients(1), (1, 3)) == other.result(SECONDS)).all()


def test_a_factor_needs_nobody_else(tmp_path: Path, ranks: list[Communicator]) -> None:
    barriers, spikes = rank_with(tmp_path, factor=100)
    barriers.step = 5
    barriers.reach("allreduce.enter")
    assert (spikes.apply(gradients(1), ranks[1].expected, share=0.25) == gradients(1) * numpy.float32(100)).all()
    assert recorded(tmp_path)[0]["factor"] == 100


def test_other_steps_and_a_step_trained_again_are_left_alone(tmp_path: Path, ranks: list[Communicator]) -> None:
    barriers, spikes = rank_with(tmp_path, factor=100)
    altered = []
    for step in (4, 5, 6, 5):
        barriers.step = step
        barriers.reach("allreduce.enter")
        altered.append(bool((spikes.apply(gradients(1), ranks[1].expected, share=0.25) != gradients(1)).any()))
    assert altered == [False, True, False, False]
    assert len(recorded(tmp_path)) == 1


def test_a_repeated_spike_comes_again_in_the_same_step_only(tmp_path: Path, ranks: list[Communicator]) -> None:
    barriers, spikes = rank_with(tmp_path, factor=100, repeat=2)
    altered = []
    for step in (5, 4, 5, 6, 5, 5):
        barriers.step = step
        barriers.reach("allreduce.enter")
        if (spikes.apply(gradients(1), ranks[1].expected, share=0.25) != gradients(1)).any():
            altered.append(step)
    assert altered == [5, 5, 5]
    assert [event["step"] for event in recorded(tmp_path)] == [5, 5, 5]


def test_a_norm_that_no_multiple_reaches_is_an_error(
    tmp_path: Path, ranks: list[Communicator], pool: ThreadPoolExecutor
) -> None:
    barriers, spikes = rank_with(tmp_path, norm=1e-3)
    for one in (0, 2, 3):
        pool.submit(ranks[one].all_reduce, gradients(one))
    barriers.step = 5
    barriers.reach("allreduce.enter")
    with pytest.raises(ValueError, match=r"no multiple of this rank's gradients .* 0\.001"):
        spikes.apply(gradients(1), ranks[1].expected, share=1.0)
    for rank in ranks:
        rank.abort()


def test_waiting_for_the_others_ends_when_told_to(ranks: list[Communicator], pool: ThreadPoolExecutor) -> None:
    waiting = pool.submit(ranks[1].expected, gradients(1))
    ranks[1].abort()
    with pytest.raises(CommunicationAborted):
        waiting.result(SECONDS)
