"""The votes of torchft's replica groups number the steps; a group that comes back begins with the state it is given."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from chaos.agent.after_import import AfterImport
from chaos.agent.torch.replica_groups import hook_replica_groups
from tests.unit.agent.conftest import Events
from tests.unit.agent.torch.test_torch_loop import Job, Make, Tensor, job, loss_of, steps

__all__ = ["job"]


class Manager:
    """A manager of torchft, as far as the agent uses it; the next quorum may make it heal."""

    def __init__(self, done: int = 0, *, heals_at: int | None = None) -> None:
        self._done = done
        self._heals_at = heals_at
        self._healing = False
        self._error: str | None = None
        self._min_replica_size = 2
        self._participating_replica_rank = 0
        self._quorum_id = 7

    def current_step(self) -> int:
        return self._done

    def num_participants(self) -> int:
        return 2 if self._healing else 3

    def errored(self) -> str | None:
        return self._error

    def wait_quorum(self) -> None:
        if self._heals_at is not None:
            self._healing, self._done, self._heals_at = True, self._heals_at, None

    def should_commit(self) -> bool:
        committed = self._error is None
        self._done += committed
        return committed


@pytest.fixture
def manager_class(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A class of managers that the hooks have wrapped."""

    class Hooked(Manager):
        pass

    module = ModuleType("torchft.manager")
    module.Manager = Hooked  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return Hooked


def trained(training: Job, manager: Any, optimizer: Any, loss: float = 0.5) -> None:
    """Train one step: its update is made only if the groups commit it."""
    training.forward()
    training.loop.backward(Tensor(loss))
    if manager.should_commit():
        training.update(optimizer)
    manager._healing = False


def begun(make: Make, manager_class: Any, *args: Any, **kwargs: Any) -> tuple[Job, Any, Any]:
    training = make()
    hook_replica_groups(AfterImport(), training.training, training.loop)
    return training, manager_class(*args, **kwargs), training.optimizer()


def test_the_manager_numbers_the_steps_and_each_vote_is_recorded(job: Make, manager_class: Any, events: Events) -> None:
    training, manager, optimizer = begun(job, manager_class)
    for _ in range(2):
        trained(training, manager, optimizer)
    assert steps(events) == [1, 2]
    vote = events("step.voted")[1].data
    assert (vote["step"], vote["committed"], vote["participants"], vote["least"]) == (2, True, 3, 2)
    assert (vote["contributes"], vote["healed"], vote["quorum"]) == (True, False, 7)


def test_a_step_without_an_update_is_trained_again(job: Make, manager_class: Any, events: Events) -> None:
    training, manager, optimizer = begun(job, manager_class)
    manager._error = "connection closed"
    trained(training, manager, optimizer, 0.25)
    manager._error = None
    trained(training, manager, optimizer, 0.75)
    assert steps(events) == [1]
    assert [loss_of(event) for event in events("digest")] == [0.75], "of the training that counts"
    assert [vote.data["committed"] for vote in events("step.voted")] == [False, True]
    assert events("step.voted")[0].data["error"] == "connection closed"


def test_a_group_that_comes_back_begins_with_the_state_that_it_is_given(
    job: Make, manager_class: Any, events: Events
) -> None:
    training, manager, optimizer = begun(job, manager_class, heals_at=8)
    trained(training, manager, optimizer, 0.25)
    trained(training, manager, optimizer)
    assert len(events("train.joins")) == 1
    (begin,) = events("train.begin")
    assert begin.data["initial_step"] == 8
    assert steps(events, "step.begin") == steps(events) == [9, 10]
    first, second = events("step.voted")
    assert (first.data["step"], first.data["healed"], first.data["contributes"]) == (9, True, False)
    assert (second.data["step"], second.data["healed"], second.data["contributes"]) == (10, False, True)
    assert loss_of(events("digest")[0]) == 0.25
