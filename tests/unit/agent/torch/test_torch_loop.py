"""A step of a loop in PyTorch goes from its first forward run to the optimizer's update, however many lie between."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy
import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests
from chaos.agent.earlier_saves import Save
from chaos.agent.record import Record
from chaos.agent.step_source import StepSource
from chaos.agent.torch.closures import closure_of, noting, with_closure
from chaos.agent.torch.loop import TorchLoop
from chaos.agent.torch.optimizers import Optimizers, keeps_own_part, state_of, updates_of
from chaos.agent.training import Training
from tests.unit.agent.conftest import Events


class Tensor:
    """A tensor of PyTorch, as far as the agent uses it."""

    def __init__(self, *values: float, requires_grad: bool = True) -> None:
        self.values = numpy.array(values, "float32")
        self.requires_grad = requires_grad

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return self.values

    def numel(self) -> int:
        return int(self.values.size)

    def __float__(self) -> float:
        return float(self.values[0])


class Model:
    """A module with one weight and two buffers, only one of which is saved."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self._non_persistent_buffers_set = {"scratch"}

    def parameters(self) -> Iterator[Tensor]:
        yield self.weight

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        yield "module.weight", self.weight

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        yield "mean", Tensor(0, requires_grad=False)
        yield "scratch", Tensor(0, requires_grad=False)

    def get_submodule(self, path: str) -> Model:
        return self


class Adam:
    """An optimizer that counts its updates for each weight."""

    def __init__(self, weight: Tensor, *, counts: bool = True) -> None:
        self.param_groups = [{"params": [weight]}]
        self.state: dict[Tensor, dict[str, Any]] = {}
        self._counts = counts

    def step(self) -> None:
        (weight,) = self.param_groups[0]["params"]
        state = self.state.setdefault(weight, {"exp_avg": Tensor(0, requires_grad=False)})
        if self._counts:
            state["step"] = state.get("step", 0) + 1
        weight.values = weight.values - 1


class Before:
    """What the job's earlier processes have recorded."""

    def __init__(self) -> None:
        self.steps: set[int] = set()
        self.saved = False

    def steps_of(self, digests: Mapping[str, str]) -> set[int]:
        return set(self.steps)

    def any_saved(self) -> bool:
        return self.saved


class Job:
    """A training loop, by the points at which the hooks are set."""

    def __init__(
        self,
        record: Record,
        armed: tuple[Any, ...],
        ends_with: int | None = None,
        channel: Any = None,
        *,
        first: bool = False,
    ) -> None:
        self.saves: dict[str, Save] = {}
        self.before = Before()
        barriers = Barriers(record, channel, list(armed))
        self.training = Training(record, barriers, Digests(record, 1), save_of=self.saves.get)
        self.source = StepSource(record, self.training)
        self.optimizers = Optimizers()
        earlier = None if first else self.before
        self.loop = TorchLoop(self.training, self.source, self.optimizers, ends_with=ends_with, earlier=earlier)
        self.model = Model(Tensor(1, 2))

    def optimizer(self, *, counts: bool = True) -> Adam:
        made = Adam(self.model.weight, counts=counts)
        self.optimizers.note(made)
        return made

    def forward(self, batch: float = 1) -> None:
        if self.loop.awaits(self.model):
            self.loop.forward(self.model, (Tensor(batch),))

    def update(self, optimizer: Adam) -> None:
        self.loop.update_begins(optimizer)
        optimizer.step()
        self.loop.update_ends(optimizer)

    def step(self, optimizer: Adam, *losses: float) -> None:
        for loss in losses or (0.5,):
            self.forward()
            self.loop.backward(Tensor(loss))
        self.update(optimizer)


Make = Callable[..., Job]


@pytest.fixture
def job(record: Record) -> Make:
    return lambda *armed, ends_with=None, first=False: Job(record, armed, ends_with, first=first)


def steps(events: Events, name: str = "step.end") -> list[int]:
    return [event.data["step"] for event in events(name)]


def loss_of(event: Any) -> float:
    return float.fromhex(event.data["loss"])


def test_a_step_has_its_loss_its_batch_and_its_state_by_name(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    for _ in range(2):
        training.step(optimizer, 0.25)
    first, second = events("digest")
    assert steps(events, "step.begin") == steps(events) == [1, 2]
    assert loss_of(first) == 0.25
    assert set(second.data["parameters"]) == {"weight", "mean", "optimizer.exp_avg.0", "optimizer.step.0"}
    assert first.data["parameters"]["weight"] != second.data["parameters"]["weight"]
    assert first.data["batch"] == second.data["batch"] is not None


def test_weights_that_are_not_trained_are_recorded_as_frozen(job: Make, events: Events) -> None:
    training, plain = job(), job()
    training.model.named_parameters = lambda: iter(  # type: ignore[method-assign]
        [("module.base", Tensor(3, requires_grad=False)), ("module.weight", training.model.weight)]
    )
    for each in (training, plain):
        each.step(each.optimizer())
    with_base, without = events("initial")
    assert with_base.data["frozen"] == ["base"]
    assert {"base", "weight", "mean"} == with_base.data["parameters"].keys()
    assert "frozen" not in without.data


def test_accumulated_gradients_are_one_step_with_the_mean_of_their_losses(job: Make, events: Events) -> None:
    training = job()
    training.step(training.optimizer(), 1.0, 3.0)
    (digest,) = events("digest")
    assert steps(events) == [1]
    assert loss_of(digest) == 2


def test_batches_of_the_loader_count_before_the_inputs_of_the_model(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    for batch in (1.0, 2.0):
        training.loop.batch([Tensor(batch), Tensor(7)])
        training.step(optimizer)
    first, second = events("digest")
    assert first.data["batch"] != second.data["batch"]


def test_a_forward_run_with_an_old_batch_begins_a_step_only_with_a_gradient(job: Make, events: Events) -> None:
    """A script may compute an accuracy behind the update, or update several times with one batch."""
    training = job()
    optimizer = training.optimizer()
    for number in (1.0, 2.0):
        training.loop.batch([Tensor(number)])
        training.step(optimizer)
        training.forward()
        assert steps(events, "step.begin") == steps(events)
    training.step(optimizer)
    assert steps(events, "step.begin") == steps(events) == [1, 2, 3]
    first, second, again = (event.data["batch"] for event in events("digest"))
    assert first != second == again is not None


def test_the_batches_of_an_evaluation_are_not_those_of_the_steps(job: Make, events: Events) -> None:
    """A script may cut its own batches, and take those of its evaluation from a loader."""
    with_evaluation, without = job(), job()
    for training in (with_evaluation, without):
        optimizer = training.optimizer()
        for number in (1.0, 2.0, 3.0):
            training.forward(number)
            training.loop.backward(Tensor(0.5))
            training.update(optimizer)
            if training is with_evaluation and number == 1:
                training.loop.batch([Tensor(7)])
                training.loop.evaluates()
    assert steps(events) == [1, 2, 3] * 2
    batches = [event.data["batch"] for event in events("digest")]
    assert batches[:3] == batches[3:]


def test_a_batch_that_is_evaluated_after_its_steps_stays_theirs(job: Make, events: Events) -> None:
    """A script may train one batch many times, and measure its loss in between; a resumed one measures it later."""
    with_evaluation, without = job(), job()
    for training in (with_evaluation, without):
        optimizer = training.optimizer()
        training.loop.batch([Tensor(7)])
        for number in (1.0, 2.0, 3.0):
            training.forward(number)
            training.loop.backward(Tensor(0.5))
            training.update(optimizer)
            if training is with_evaluation:
                training.loop.evaluates()
    batches = [event.data["batch"] for event in events("digest")]
    assert batches[:3] == batches[3:]


def test_a_teacher_leaves_the_batch_to_a_model_without_inputs_of_its_own(job: Make, events: Events) -> None:
    """A model of transformers has named inputs, which no hook sees."""
    training = job()
    optimizer = training.optimizer()
    for number in (1.0, 2.0):
        training.loop.batch([Tensor(number)])
        training.loop.evaluates()
        training.loop.forward(training.model, ())
        training.loop.backward(Tensor(0.5))
        training.update(optimizer)
    first, second = (event.data["batch"] for event in events("digest"))
    assert None is not first != second


def test_a_batch_that_is_fetched_ahead_begins_the_next_step(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    training.loop.batch([Tensor(1)])
    for number in (2.0, 3.0):
        training.forward()
        training.loop.batch([Tensor(number)])
        training.loop.backward(Tensor(0.5))
        training.update(optimizer)
    training.forward()
    assert steps(events, "step.begin") == [1, 2, 3]


def test_skipped_batches_are_no_part_of_the_step_that_follows(job: Make, events: Events) -> None:
    for batches in ([3.0], [1.0, 2.0, 3.0]):
        training = job()
        for batch in batches:
            training.loop.batch([Tensor(batch)])
        training.step(training.optimizer())
    first, second = events("digest")
    assert first.data["batch"] == second.data["batch"]


def test_each_part_of_an_accumulation_has_its_batch(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    for last in (2.0, 3.0):
        for batch in (1.0, last):
            training.loop.batch([Tensor(batch)])
            training.forward()
            training.loop.backward(Tensor(0.5))
        training.update(optimizer)
    first, second = events("digest")
    assert steps(events) == [1, 2]
    assert first.data["batch"] != second.data["batch"]


def test_training_goes_on_from_the_updates_that_a_checkpoint_has_restored(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    optimizer.state[training.model.weight] = {"step": 8}
    training.step(optimizer)
    assert steps(events) == [9]
    assert events("train.begin")[0].data["initial_step"] == 8


def test_without_a_counter_the_loaded_checkpoint_gives_the_step(job: Make, events: Events) -> None:
    training = job()
    training.training.load("x.pt", lambda: {"step": 4}, lambda loaded: int(loaded["step"]))
    training.step(training.optimizer(counts=False))
    assert steps(events) == [5]


@pytest.mark.parametrize(
    ("own", "save", "first"),
    [(7, Save(8), 9), (9, Save(8), 9), (8, Save(9, within=True), 9), (4, Save(8), 5), (8, Save(8), 9)],
    ids=["counts from 0", "names the next step", "saved within step 9", "content of another step", "alike"],
)
def test_of_two_numbers_that_differ_by_one_the_recorded_save_is_right(
    job: Make, events: Events, own: int, save: Save, first: int
) -> None:
    training = job()
    training.saves["/checkpoints/x"] = save
    training.training.load("/checkpoints/x", dict, lambda loaded: own)
    training.step(training.optimizer(counts=False))
    assert steps(events) == [first]


@pytest.mark.parametrize("own", [3, None])
def test_the_state_that_a_rank_goes_on_with_has_the_step_where_no_save_is_recorded(
    job: Make, events: Events, own: int | None
) -> None:
    """A loop that saves before a step saves the loaded file anew, before it has a step."""
    training = job()
    training.before.steps = {4}
    training.training.load("x.pt", dict, lambda loaded: own)
    training.step(training.optimizer(counts=False))
    assert steps(events) == [5]


def test_without_any_number_the_steps_are_unclear(job: Make, events: Events) -> None:
    training = job()
    training.training.load("x.pt", dict, lambda loaded: None)
    training.step(training.optimizer(counts=False))
    (reason,) = events("steps.unclear")
    assert "the number of the first step is not known" in reason.data["reason"]
    assert steps(events, "step.begin") == []


@pytest.mark.parametrize(("step", "seen"), [(8, [9]), (None, [])])
def test_a_checkpoint_that_is_read_from_memory_gives_the_step_or_leaves_it_open(
    job: Make, events: Events, step: int | None, seen: list[int]
) -> None:
    training = job()
    training.training.loaded_unnamed(step)
    training.step(training.optimizer(counts=False))
    assert (steps(events), len(events("steps.unclear"))) == (seen, 1 - len(seen))


def test_data_that_the_first_process_reads_from_memory_is_no_checkpoint(job: Make, events: Events) -> None:
    training = job(first=True)
    training.training.loaded_unnamed(None)
    training.step(training.optimizer(counts=False))
    assert (steps(events), events("steps.unclear")) == ([1], [])


@pytest.mark.parametrize("counts", [True, False])
def test_data_that_the_first_process_of_a_rank_loads_is_no_checkpoint(job: Make, events: Events, counts: bool) -> None:
    training = job(first=True)
    training.training.load("/data/train.pt", dict, lambda loaded: None)
    training.step(training.optimizer(counts=counts))
    assert (steps(events), events("steps.unclear")) == ([1], [])


@pytest.mark.parametrize(
    ("recorded", "saved", "seen"),
    [({8}, True, [9]), ({0}, True, [1]), (set(), False, [1]), (set(), True, []), ({4, 8}, True, [])],
    ids=["handed over", "begun anew", "nothing to load", "another state", "a state of two steps"],
)
def test_a_rank_that_loads_nothing_begins_after_the_step_of_the_state_that_it_holds(
    job: Make, events: Events, recorded: set[int], saved: bool, seen: list[int]
) -> None:
    """Another rank may load the checkpoint and hand it over, and SGD counts no updates."""
    training = job()
    training.before.steps, training.before.saved = recorded, saved
    training.step(training.optimizer(counts=False))
    assert (steps(events), len(events("steps.unclear"))) == (seen, 1 - len(seen))


def test_an_update_without_a_gradient_is_no_step(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    training.update(optimizer)  # as torch.distributed.checkpoint does, to make the optimizer's state
    training.forward()
    training.update(optimizer)
    assert steps(events) == []


def test_a_state_that_is_loaded_after_an_update_without_a_gradient_has_the_count(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    training.update(optimizer)
    training.training.load("step-8", lambda: {"step": 8}, lambda loaded: int(loaded["step"]))
    optimizer.state[training.model.weight]["step"] = 8
    training.step(optimizer)
    assert steps(events) == [9]


def test_an_optimizer_whose_state_was_not_loaded_does_not_decide_the_step(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    training.update(optimizer)
    training.training.load("step-8", lambda: {"step": 8}, lambda loaded: int(loaded["step"]))
    training.step(optimizer)
    assert steps(events) == [9]


def test_a_count_that_only_an_update_without_a_gradient_has_made_is_no_number_of_steps(
    job: Make, events: Events
) -> None:
    training = job()
    optimizer = training.optimizer()
    training.update(optimizer)
    training.step(optimizer)
    (reason,) = events("steps.unclear")
    assert "has counted an update before the first step" in reason.data["reason"]
    assert steps(events) == []


def test_an_update_within_another_is_a_part_of_it(job: Make, events: Events) -> None:
    training = job()
    outer, inner = training.optimizer(), Adam(training.model.weight)
    training.forward()
    training.loop.backward(Tensor(0.5))
    training.loop.update_begins(outer)
    training.update(inner)
    assert steps(events) == []
    training.loop.update_ends(outer)
    assert steps(events) == [1]


def update_with(training: Job, optimizer: Adam, *losses: float, batches: tuple[float, ...] = (1,)) -> None:
    """Call ``optimizer.step(closure)``, which calls the closure once for each loss, as LBFGS does."""
    given = iter(losses)

    def closure() -> None:
        loss = next(given)
        for batch in batches:
            training.forward(batch)
            training.loop.backward(Tensor(loss))

    noted = noting(training.loop.closures, training.loop, optimizer, closure)
    training.loop.update_begins(optimizer, sys._getframe(), closure=True)
    for _ in losses:
        noted()
        optimizer.step()
    training.loop.update_ends(optimizer)


def test_the_first_call_of_a_closure_is_the_steps_and_the_others_search(job: Make, events: Events) -> None:
    training = job(*({"step": 1, "phase": phase, "fault": phase} for phase in ("forward", "optimizer.update")))
    optimizer = training.optimizer(counts=False)
    update_with(training, optimizer, 0.25, 3, 4)
    update_with(training, optimizer, 0.5)
    update_with(training, optimizer, 0.5, batches=(1, 2))
    assert steps(events, "step.begin") == steps(events) == [1, 2, 3]
    first, second, accumulated = events("digest")
    assert (loss_of(first), loss_of(second), loss_of(accumulated)) == (0.25, 0.5, 0.5)
    assert first.data["batch"] == second.data["batch"] != accumulated.data["batch"]
    assert events("steps.unclear") == []
    assert [event.data["phase"] for event in events("barrier.reached")] == ["forward", "optimizer.update"]


def test_a_closure_after_a_backward_run_of_the_step_is_a_part_of_the_update(job: Make, events: Events) -> None:
    """So does sharpness-aware minimization: its closure computes the second gradient."""
    training = job()
    optimizer = training.optimizer()
    training.forward()
    training.loop.backward(Tensor(0.25))
    update_with(training, optimizer, 7)
    assert [loss_of(event) for event in events("digest")] == [0.25]


def test_a_closure_that_raises_an_error_can_be_tried_again(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()

    def closure() -> None:
        training.forward(9)
        training.loop.backward(Tensor(9))
        raise FloatingPointError

    def fail() -> None:
        training.loop.update_begins(optimizer, sys._getframe(), closure=True)
        noting(training.loop.closures, training.loop, optimizer, closure)()

    with pytest.raises(FloatingPointError):
        fail()
    update_with(training, optimizer, 0.25)
    update_with(training, optimizer, 0.25)
    first, second = events("digest")
    assert steps(events) == [1, 2]
    assert loss_of(first) == loss_of(second) == 0.25
    assert first.data["batch"] == second.data["batch"]


@pytest.mark.parametrize("named", [False, True])
def test_the_closure_of_an_update_is_found_and_replaced(named: bool) -> None:
    first, second = list, dict
    args: tuple[Any, ...] = ("optimizer",) if named else ("optimizer", first)
    kwargs: dict[str, Any] = {"closure": first} if named else {}
    assert closure_of(args, kwargs) is first
    assert closure_of(*with_closure(args, kwargs, second)) is second
    assert closure_of(("optimizer",), {}) is closure_of(("optimizer", None), {}) is None


def fail(loop: TorchLoop, *optimizers: Adam) -> None:
    """Raise an error in the update of the last optimizer, which lies within those of the others."""
    loop.update_begins(optimizers[0], sys._getframe())
    if optimizers[1:]:
        fail(loop, *optimizers[1:])
    raise FloatingPointError


@pytest.mark.parametrize("nested", [False, True])
def test_an_update_that_raises_an_error_does_not_end_the_step_and_can_be_tried_again(
    job: Make, events: Events, nested: bool
) -> None:
    training = job()
    optimizers = [training.optimizer()]
    training.loop.batch([Tensor(3)])
    training.forward()
    training.loop.backward(Tensor(7))
    with pytest.raises(FloatingPointError):
        fail(training.loop, *optimizers, *([Adam(training.model.weight)] if nested else []))
    assert steps(events) == []
    training.loop.batch([Tensor(4)])
    training.step(optimizers[0], 0.25)
    training.step(optimizers[0], 0.25)
    assert steps(events) == [1, 2]
    first, second = events("digest")
    assert loss_of(first) == loss_of(second) == 0.25
    assert first.data["batch"] == second.data["batch"]


def test_an_update_whose_error_the_loop_answers_with_the_update_alone_is_the_steps(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    training.forward()
    training.loop.backward(Tensor(0.25))
    with pytest.raises(FloatingPointError):
        fail(training.loop, optimizer)
    training.update(optimizer)
    (digest,) = events("digest")
    assert loss_of(digest) == 0.25


def test_an_error_within_an_outer_update_leaves_the_outer_one(job: Make, events: Events) -> None:
    training = job()
    outer, inner = training.optimizer(), Adam(training.model.weight)
    training.forward()
    training.loop.backward(Tensor(0.5))
    training.loop.update_begins(outer, sys._getframe())
    with pytest.raises(FloatingPointError):
        fail(training.loop, inner)
    assert not training.loop.awaits(training.model)
    training.loop.update_ends(outer)
    training.step(outer)
    assert steps(events) == [1, 2]


def test_the_update_of_another_thread_is_not_taken_for_ended(job: Make) -> None:
    training = job()
    optimizer, begun, looked_at = training.optimizer(), threading.Event(), threading.Event()

    def update() -> None:
        training.loop.update_begins(optimizer, sys._getframe())
        begun.set()
        looked_at.wait()
        training.loop.update_ends(optimizer)

    other = threading.Thread(target=update)
    other.start()
    begun.wait()
    awaited = training.loop.awaits(training.model)
    looked_at.set()
    other.join()
    assert not awaited
    assert training.loop.awaits(training.model)


@pytest.mark.parametrize("forward_again", [True, False])
def test_a_backward_run_that_raises_an_error_counts_for_nothing(job: Make, events: Events, forward_again: bool) -> None:
    training = job()
    optimizer = training.optimizer()
    for failed in (False, True):
        training.forward(1)
        training.loop.backward(Tensor(0.5))
        training.forward(2)
        if failed:
            training.loop.backward(Tensor(9))
            training.loop.backward_failed()
            if forward_again:
                training.forward(2)
        training.loop.backward(Tensor(0.25))
        training.update(optimizer)
    without, with_error = events("digest")
    assert without.data["batch"] == with_error.data["batch"]
    assert loss_of(without) == loss_of(with_error) == 0.375


def test_an_optimizer_that_another_holds_is_not_the_loops(job: Make) -> None:
    optimizers = Optimizers()
    outer, inner = Adam(Tensor(1)), Adam(Tensor(1))
    outer.inner = inner  # type: ignore[attr-defined]
    for made in (outer, inner):
        optimizers.note(made)
    assert optimizers.alive() == [outer]


class Zero(Adam):
    """An optimizer like ZeroRedundancyOptimizer: the one within it has this rank's weights only, and their state."""

    def __init__(self, weights: list[Tensor], *, own: list[Tensor]) -> None:
        super().__init__(weights[0])
        self.param_groups = [{"params": weights}]
        self.optim = Adam(own[0])
        self.optim.param_groups = [{"params": own}]
        self.optim.state = {weight: {"step": 8, "exp_avg": Tensor(0)} for weight in own}


def test_the_state_of_an_optimizer_within_another_has_the_numbers_of_all_weights() -> None:
    weights = [Tensor(1), Tensor(2)]
    optimizer = Zero(weights, own=weights[1:])
    assert updates_of(optimizer) == 8
    slots = [name for name, _ in state_of(Model(weights[0]), [optimizer]) if name.startswith("optimizer")]
    assert slots == ["optimizer.step.1", "optimizer.exp_avg.1"]
    assert keeps_own_part(optimizer)
    assert not keeps_own_part(Zero(weights, own=weights))
    assert not keeps_own_part(Adam(weights[0]))


def test_two_optimizers_in_turn_make_the_steps_unclear(job: Make, events: Events) -> None:
    training = job()
    first, second = training.optimizer(), training.optimizer()
    training.step(first)
    training.step(second)
    (reason,) = events("steps.unclear")
    assert "two optimizers" in reason.data["reason"]
    assert "job.step_optimizer" in reason.data["reason"]
    assert steps(events) == [1]


@pytest.mark.parametrize(("ends_with", "updates"), [(2, 1), (1, 3)])
def test_the_named_optimizer_ends_the_step_whatever_others_update(
    job: Make, events: Events, ends_with: int, updates: int
) -> None:
    """As in a GAN, or with an optimizer for each part of a model; one may update several times in a step."""
    training = job(ends_with=ends_with)
    both = training.optimizer(), training.optimizer()
    named, other = both[ends_with - 1], both[2 - ends_with]
    for _ in range(3):
        for _ in range(updates):
            training.forward()
            training.loop.backward(Tensor(0.5))
            training.update(other)
        training.step(named, 0.25)
    assert events("steps.unclear") == []
    assert steps(events) == [1, 2, 3]
    assert steps(events, "step.begin") == [1, 2, 3]


def test_the_count_of_the_named_optimizer_gives_the_first_step(job: Make, events: Events) -> None:
    training = job(ends_with=2)
    other, named = training.optimizer(), training.optimizer()
    other.state[training.model.weight] = {"step": 12}
    named.state[training.model.weight] = {"step": 4}
    training.step(named)
    assert steps(events) == [5]


def test_an_optimizer_that_is_not_there_makes_the_steps_unclear(job: Make, events: Events) -> None:
    training = job(ends_with=3)
    training.step(training.optimizer())
    (reason,) = events("steps.unclear")
    assert reason.data["reason"] == "job.step_optimizer names optimizer 3, and the script has made 1"
    assert steps(events) == []


def test_a_weight_that_changes_after_the_update_makes_the_steps_unclear(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    training.step(optimizer)
    training.model.weight.values = training.model.weight.values * 2
    training.step(optimizer)
    (reason,) = events("steps.unclear")
    assert "weight changed after the update of step 1" in reason.data["reason"]


@pytest.mark.parametrize(
    ("value", "seen"),
    [([Tensor(1)], [1]), ({"by block": object()}, [1]), ([(1, 2.5), None], [1, 2]), ("cosine", [1, 2])],
)
def test_a_state_that_cannot_be_compared_makes_the_steps_unclear(
    job: Make, events: Events, value: Any, seen: list[int]
) -> None:
    """LBFGS keeps lists of tensors, and others an object for each block of a weight."""
    training = job()
    optimizer = training.optimizer()
    optimizer.state[training.model.weight] = {"kept": value}
    for _ in range(2):
        training.step(optimizer)
    assert steps(events) == seen
    reasons = [event.data["reason"] for event in events("steps.unclear")]
    assert all("optimizer.kept.0" in reason and "cannot be compared" in reason for reason in reasons)
    assert len(reasons) == 2 - len(seen)


def test_a_teacher_within_the_model_that_moves_after_the_update_makes_the_steps_unclear(
    job: Make, events: Events
) -> None:
    """Its weights have no gradient, and follow those that have: BYOL and DINO are trained so."""
    training, teacher = job(), Tensor(1, requires_grad=False)
    training.model.named_parameters = lambda: iter(  # type: ignore[method-assign]
        [("module.weight", training.model.weight), ("module.teacher", teacher)]
    )
    optimizer = training.optimizer()
    training.step(optimizer)
    teacher.values = teacher.values * 2
    training.step(optimizer)
    (reason,) = events("steps.unclear")
    assert "teacher changed after the update of step 1" in reason.data["reason"]


def test_lines_of_the_jobs_own_count_alone(job: Make, events: Events) -> None:
    training = job()
    training.source.lines = True
    training.step(training.optimizer())
    assert steps(events, "step.begin") == []


def test_every_phase_has_its_barrier(job: Make, events: Events) -> None:
    phases = ("step.begin", "forward", "allreduce.enter", "optimizer.update", "step.end")
    training = job(*({"step": 1, "phase": phase, "fault": phase} for phase in phases))
    training.step(training.optimizer())
    assert [event.data["phase"] for event in events("barrier.reached")] == list(phases)


class NotYet:
    """A harness for which every barrier comes too early."""

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"message": "later"}


def test_no_backward_run_but_the_first_is_sure_to_be_before_the_exchange(record: Record, events: Events) -> None:
    """DDP may have reduced gradients in it, and the first of two networks may have its update behind it."""
    armed = tuple({"step": step, "phase": "allreduce.enter", "fault": f"in {step}"} for step in (1, 2))
    training = Job(record, armed, channel=NotYet())
    optimizer = training.optimizer()
    training.loop.backward(Tensor(0.5))
    assert events("barrier.reached") == [], "a gradient outside of a step is none of the training's"
    for _ in range(2):
        training.step(optimizer, 1.0, 2.0, 3.0)
    assert [event.data["step"] for event in events("barrier.reached")] == [1, 2]
    assert steps(events) == [1, 2]


def test_the_numbers_of_the_optimizer_are_those_with_which_the_step_was_trained(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    group: dict[str, Any] = optimizer.param_groups[0]
    group.update(lr=0.5, betas=(0.9, 0.99), maximize=False, foreach=None)
    training.step(optimizer)
    group["lr"] = 0.25
    training.step(optimizer)
    first, second = (event.data["hyperparameters"] for event in events("digest"))
    assert first == {"optimizer.0.lr": 0.5, "optimizer.0.betas.0": 0.9, "optimizer.0.betas.1": 0.99}
    assert second["optimizer.0.lr"] == 0.25


def leave_out(training: Job, optimizer: Adam, *, fused: bool = False) -> None:
    """Train a step with a gradient that is not finite: a fused optimizer is called, and counts nothing."""
    training.forward()
    training.loop.backward(Tensor(0.5))
    if fused:
        training.loop.update_begins(optimizer)
        training.loop.update_ends(optimizer)
    training.loop.scaler_stepped(optimizer, left_out=True)


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_whose_update_a_scaler_leaves_out_counts(job: Make, events: Events, fused: bool) -> None:
    training = job()
    optimizer = training.optimizer()
    leave_out(training, optimizer, fused=fused)
    training.step(optimizer)
    training.loop.scaler_stepped(optimizer, left_out=False)
    leave_out(training, optimizer, fused=fused)
    assert steps(events, "step.begin") == steps(events) == [1, 2, 3]
    assert steps(events, "update.left_out") == [1, 3]
    assert events("steps.unclear") == []


class Changed:
    """What a fault changes in a rank: it ends with the step."""

    def __init__(self) -> None:
        self.ended = 0

    def backward(self, loss: Any, gradient: Any) -> Any:
        return gradient

    def update_begins(self) -> None:
        self.ended += 1


def test_a_changed_value_ends_with_the_step_whose_update_it_prevents(job: Make) -> None:
    training = job()
    changed = training.loop.alterations = Changed()
    leave_out(training, training.optimizer())
    assert changed.ended == 1


def test_of_several_optimizers_the_named_one_ends_a_step_without_its_update(job: Make, events: Events) -> None:
    training = job(ends_with=2)
    other, named = training.optimizer(), training.optimizer()
    leave_out(training, other)
    assert steps(events) == []
    training.loop.scaler_stepped(named, left_out=True)
    assert steps(events) == steps(events, "update.left_out") == [1]


def test_the_loss_of_a_step_is_the_one_without_the_scale(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    for scaled, loss in ((Tensor(65536 * 0.25), Tensor(0.25)), (Tensor(7.0), None)):
        training.forward()
        if loss is not None:
            training.loop.scales(loss, scaled)
        training.loop.backward(scaled)
        training.update(optimizer)
    assert [loss_of(digest) for digest in events("digest")] == [0.25, 7.0]


def resumed(training: Job, save: Save, updates: int) -> None:
    """Load a checkpoint that an earlier process has saved, and the optimizer's state of so many updates."""
    training.saves["/checkpoints/x"] = save
    training.training.load("/checkpoints/x", dict)
    optimizer = training.optimizer()
    optimizer.state[training.model.weight] = {"step": updates}
    training.step(optimizer)


def test_steps_without_an_update_before_the_checkpoint_count_after_a_restart(job: Make, events: Events) -> None:
    training = job()
    resumed(training, Save(8, 2), updates=6)
    assert steps(events) == [9]
    with training.training.saving("/checkpoints/y", end_of_life=False):
        pass
    assert events("checkpoint.end")[0].data["left_out"] == 2, "the next checkpoint lacks them, too"


def test_a_state_of_another_step_than_the_save_leaves_the_number_of_steps_open(job: Make, events: Events) -> None:
    training = job()
    resumed(training, Save(8, 2), updates=3)
    (reason,) = events("steps.unclear")
    assert "has counted 3 updates" in reason.data["reason"]
    assert "after 8 steps, 2 of them without an update" in reason.data["reason"]
    assert steps(events) == []


def test_a_save_that_lacks_no_update_leaves_the_step_to_the_optimizer(job: Make, events: Events) -> None:
    resumed(job(), Save(8), updates=4)
    assert steps(events) == [5]


class Sealed(Tensor):
    """A tensor of a class of the job's own, which refuses to be read."""

    def cpu(self) -> Tensor:
        raise RuntimeError("no values here")


def test_a_tensor_that_cannot_be_read_has_no_digest_and_leaves_the_job_alone(job: Make, events: Events) -> None:
    training = job()
    training.model.named_buffers = lambda: iter([("sealed", Sealed(0))])  # type: ignore[method-assign]
    optimizer = training.optimizer()
    for _ in range(2):
        training.loop.batch([Sealed(1)])
        training.step(optimizer)
    (initial,) = events("initial")
    for event in (initial, *events("digest")):
        assert event.data["unreadable"] == {"sealed": "Sealed: RuntimeError: no values here"}
        assert "sealed" not in event.data["parameters"] and "weight" in event.data["parameters"]
    assert [event.data["batch"] for event in events("digest")] == [None, None]
    assert steps(events) == [1, 2]


def reasons(events: Events) -> list[str]:
    return [event.data["reason"] for event in events("steps.unclear")]


def test_an_update_without_a_loss_that_was_seen_is_unclear(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    training.forward()
    training.update(optimizer)
    assert reasons(events) == ["Adam updates in step 1, and no scalar's backward() was called before in it"]


def test_gradients_without_a_forward_run_are_said_at_the_end(job: Make, events: Events) -> None:
    training = job()
    training.loop.backward(Tensor(0.5))
    assert not reasons(events)
    training.source.finish()
    assert "no forward run of a model with weights was seen" in reasons(events)[0]
    assert not events("steps.none")


def test_a_first_step_that_no_update_ends_is_said_at_the_end(job: Make, events: Events) -> None:
    training = job()
    optimizer = training.optimizer()
    for _ in range(2):
        training.forward()
        training.loop.backward(Tensor(0.5))
    training.source.finish()
    assert not optimizer.state
    assert "no update of an optimizer was seen" in reasons(events)[0]


def test_a_forward_run_after_the_last_step_leaves_the_steps_clear(job: Make, events: Events) -> None:
    training = job()
    training.step(training.optimizer())
    training.forward()
    training.source.finish()
    assert not reasons(events)


def test_a_replaced_optimizer_is_collected_once_and_not_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[int] = []
    collect = gc.collect
    monkeypatch.setattr(gc, "collect", lambda: collected.append(collect()))
    optimizers = Optimizers()
    replaced: Any = Adam(Tensor(1))
    replaced.itself = replaced
    optimizers.note(replaced)
    del replaced
    kept = Adam(Tensor(2))
    optimizers.note(kept)
    for _ in range(3):
        assert optimizers.alive() == [kept]
    assert len(collected) == 1
