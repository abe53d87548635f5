"""A loop without ``Model.train`` is counted where a step has one meaning only; else its steps are unclear, with why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests, array_digest
from chaos.agent.earlier_saves import Save
from chaos.agent.loops import Loop, first_leaf
from chaos.agent.record import Record
from chaos.agent.step_source import StepSource
from chaos.agent.training import Training
from tests.unit.agent.conftest import Events


class Parameter:
    """A tensor with a name."""

    def __init__(self, name: str, *values: float) -> None:
        self.name = name
        self.values = numpy.array(values, "float32")

    def asnumpy(self) -> Any:
        return self.values


class Momentum:
    """An optimizer that counts its updates."""

    def __init__(self, weight: Parameter, done: int = 0) -> None:
        self.parameters = [weight]
        self.global_step = Parameter("global_step", done)

    def get_parameters(self) -> list[Parameter]:
        return [*self.parameters, self.global_step]

    def __call__(self, gradient: float) -> None:
        self.parameters[0].values -= gradient
        self.global_step.values += 1


class Uncounted(Momentum):
    """An optimizer without a counter."""

    global_step: Any = None

    def __init__(self, weight: Parameter) -> None:
        self.parameters = [weight]
        self.moments = Parameter("moments", 0)

    def get_parameters(self) -> list[Parameter]:
        return [*self.parameters, self.moments]

    def __call__(self, gradient: float) -> None:
        self.parameters[0].values -= gradient


class Framework:
    """The optimizers of a process."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def alive(self) -> list[Any]:
        return self.made

    def updates(self, optimizer: Any) -> int | None:
        counter = optimizer.global_step
        return None if counter is None else int(counter.values[0])

    def state(self, optimizer: Any) -> list[tuple[str, Any]]:
        return [(parameter.name, parameter) for parameter in optimizer.get_parameters()]


class Job:
    """A training loop of one's own, by the points at which the hooks are set."""

    def __init__(self, record: Record, armed: tuple[Any, ...], resumed: bool, per_update: int, in_model: bool) -> None:
        barriers = Barriers(record, None, list(armed))
        self.saves: dict[str, Save] = {}
        self.training = Training(record, barriers, Digests(record, 1), per_update, save_of=self.saves.get)
        self.source = StepSource(record, self.training)
        self.framework = Framework()
        self.loop = Loop(
            self.training,
            self.source,
            self.framework,
            resumed=resumed,
            armed=barriers.armed_phases,
            in_model=in_model,
        )
        self.weight = Parameter("weight", 1, 2)

    def optimizer(self, done: int = 0) -> Momentum:
        self.framework.made.append(Momentum(self.weight, done))
        return self.framework.made[-1]  # type: ignore[no-any-return]

    def gradient(self, batch: float = 1, loss: float = 0.5) -> Any:
        return self.loop.gradient((numpy.array(batch),), lambda: (numpy.float32(loss), "logits"))

    def update(self, optimizer: Momentum) -> Any:
        return self.loop.update(optimizer, lambda: optimizer(0.25))

    def step(self, optimizer: Momentum, batch: float = 1, loss: float = 0.5) -> None:
        self.gradient(batch, loss)
        self.update(optimizer)

    def compiled(
        self, work: Callable[[], Any], *names: str, gradient: bool = False, key: str = "", batch: float = 1
    ) -> Any:
        def run() -> Any:
            self.loop.compiled_with(key or ",".join(names), names, gradient=gradient)
            return work()

        return self.loop.compiled((numpy.array(batch),), run)


Make = Callable[..., Job]


@pytest.fixture
def job(record: Record) -> Make:
    return lambda *armed, resumed=False, per_update=1, in_model=False: Job(record, armed, resumed, per_update, in_model)


def steps(events: Events, name: str = "step.end") -> list[int]:
    return [event.data["step"] for event in events(name)]


def unclear(events: Events) -> str:
    (event,) = events("steps.unclear")
    return str(event.data["reason"])


PHASES = ("step.begin", "forward", "optimizer.update", "step.end")


def test_a_gradient_and_an_update_are_a_step(job: Make, events: Events) -> None:
    own = job(*({"fault": phase, "step": 2, "phase": phase} for phase in PHASES))
    optimizer = own.optimizer()
    own.step(optimizer, batch=1, loss=0.5)
    own.step(optimizer, batch=2, loss=0.25)
    own.source.finish()
    assert events("train.begin")[0].data == {"initial_step": 0}
    assert steps(events, "step.begin") == steps(events) == [1, 2]
    assert [event.data["phase"] for event in events("barrier.reached")] == list(PHASES)
    digests = [event.data for event in events("digest")]
    assert [digest["loss"] for digest in digests] == [(0.5).hex(), (0.25).hex()]
    assert digests[0]["batch"] != digests[1]["batch"]
    assert [digest["parameters"]["weight"] for digest in digests] == [
        array_digest(numpy.array([1 - part, 2 - part], "float32")) for part in (0.25, 0.5)
    ]
    assert set(digests[0]["parameters"]) == {"weight", "global_step"}
    assert len(events("train.end")) == 1


@pytest.mark.parametrize("first", [1, 2])
def test_weights_that_change_after_the_update_leave_the_end_of_a_step_unclear(
    job: Make, events: Events, first: int
) -> None:
    """For example ranks that hand each other what each has updated: a file that is saved then has other weights."""
    own = job()
    optimizer = own.optimizer()
    for step in (1, 2, 3):
        own.step(optimizer)
        if step >= first:
            own.weight.values += 1
    assert unclear(events) == (
        f"weight changed after the update of step {first}, so the step ends later than the optimizer Momentum"
    )
    assert steps(events) == list(range(1, first + 1))


def test_running_statistics_may_change_before_the_gradient_of_the_next_step(job: Make, events: Events) -> None:
    """``TrainOneStepCell`` runs forward before it asks for the gradient."""
    own = job()
    optimizer = own.optimizer()
    moving = Parameter("moving_mean", 0)
    moving.requires_grad = False  # type: ignore[attr-defined]
    optimizer.parameters.append(moving)
    for _ in (1, 2, 3):
        moving.values += 1
        own.step(optimizer)
    assert events("steps.unclear") == []
    assert steps(events) == [1, 2, 3]


def test_results_pass_through_unchanged(job: Make) -> None:
    own = job()
    optimizer = own.optimizer()
    assert own.gradient() == (numpy.float32(0.5), "logits")
    assert own.update(optimizer) is None
    assert own.compiled(lambda: "answer", "weight") == "answer"


def test_a_compiled_function_with_the_optimizers_state_is_a_step(job: Make, events: Events) -> None:
    own = job(
        {"fault": "kill", "step": 2, "phase": "forward"}, {"fault": "late", "step": 2, "phase": "optimizer.update"}
    )
    optimizer = own.optimizer()

    def train_step() -> Any:
        optimizer(0.25)
        return numpy.float32(0.5), "logits"

    for batch in (1, 2):
        own.compiled(train_step, "weight", "global_step", batch=batch)
        own.compiled(lambda: numpy.float32(9), "weight", batch=batch)  # an evaluation
    assert steps(events, "step.begin") == steps(events) == [1, 2]
    assert [event.data["loss"] for event in events("digest")] == [(0.5).hex()] * 2
    assert [event.data["phase"] for event in events("barrier.reached")] == ["forward"]
    (unreachable,) = events("phase.unreachable")
    assert unreachable.data == {"phase": "optimizer.update", "reason": "the whole step is one compiled function"}


def test_a_compiled_gradient_with_an_update_behind_it_is_a_step(job: Make, events: Events) -> None:
    own = job({"fault": "kill", "step": 1, "phase": "optimizer.update"})
    optimizer = own.optimizer()
    own.compiled(lambda: ((numpy.float32(0.5), "logits"), "gradients"), "weight", gradient=True)
    own.compiled(lambda: None, "weight")  # gradients are clipped
    own.update(optimizer)
    assert steps(events) == [1]
    assert events("digest")[0].data["loss"] == (0.5).hex()
    assert len(events("barrier.reached")) == 1


def test_what_an_optimizer_or_a_gradient_calls_is_a_part_of_it(job: Make, events: Events) -> None:
    own = job()
    optimizer = own.optimizer()
    own.loop.gradient((), lambda: own.compiled(own.gradient, "weight", "global_step"))
    own.loop.update(optimizer, lambda: own.compiled(lambda: own.update(optimizer), "weight", "global_step"))
    assert steps(events, "step.begin") == steps(events) == [1]
    assert not events("steps.unclear")


def test_an_evaluation_is_no_step(job: Make, events: Events) -> None:
    own = job()
    optimizer = own.optimizer()
    own.compiled(lambda: 1, "weight")
    own.step(optimizer)
    own.compiled(lambda: 1, "weight")
    own.compiled(lambda: 1)
    own.step(optimizer)
    assert steps(events) == [1, 2]


# Loops that can be counted in several ways.


def accumulates(own: Job) -> None:
    optimizer = own.optimizer()
    own.gradient()
    own.gradient()
    own.update(optimizer)


def two_optimizers(own: Job) -> None:
    first, second = own.optimizer(), own.optimizer()
    own.step(first)
    own.step(second)


def another_optimizer_later(own: Job) -> None:
    own.step(own.optimizer())
    own.framework.made.clear()
    own.step(own.optimizer())


def updates_twice(own: Job) -> None:
    optimizer = own.optimizer()
    own.step(optimizer)
    own.update(optimizer)


def gradient_unseen(own: Job) -> None:
    own.update(own.optimizer())


def compiled_in_an_open_step(own: Job) -> None:
    optimizer = own.optimizer()
    own.gradient()
    own.compiled(lambda: optimizer(1), "global_step")


def compiled_with_two(own: Job) -> None:
    own.optimizer(), own.optimizer()
    own.compiled(lambda: None, "global_step")


def compiled_without_an_update(own: Job) -> None:
    own.optimizer()
    own.compiled(lambda: None, "global_step")


def compiled_with_several_updates(own: Job) -> None:
    optimizer = own.optimizer()
    own.compiled(lambda: list(map(optimizer, (1, 1))), "global_step")


def compiled_out_of_sight(own: Job) -> None:
    optimizer = own.optimizer()
    own.step(optimizer)
    own.compiled(lambda: optimizer(1))


def after_model_train(own: Job) -> None:
    with own.source.model_train():
        pass
    own.step(own.optimizer())


def before_model_train(own: Job) -> None:
    own.step(own.optimizer())
    with own.source.model_train():
        pass


def a_gradient_that_failed(own: Job) -> None:
    optimizer = own.optimizer()
    with pytest.raises(ZeroDivisionError):
        own.loop.gradient((), lambda: 1 / 0)
    own.step(optimizer)


@pytest.mark.parametrize(
    ("habit", "reason"),
    [
        (accumulates, "a second gradient was computed in step 1 before the weights were updated"),
        (two_optimizers, "there are two optimizers, Momentum and Momentum"),
        (another_optimizer_later, "there are two optimizers, Momentum and Momentum"),
        (updates_twice, "the optimizer Momentum updates the weights, and chaos has seen no gradient before"),
        (gradient_unseen, "the optimizer Momentum updates the weights, and chaos has seen no gradient before"),
        (compiled_in_an_open_step, "a compiled function updates the weights in step 1, after its gradient"),
        (compiled_with_two, "there are two optimizers"),
        (compiled_without_an_update, "one call of a compiled function has made 0 updates"),
        (compiled_with_several_updates, "one call of a compiled function has made 2 updates"),
        (compiled_out_of_sight, "one call of a compiled function has made 1 updates"),
        (after_model_train, "the script trains by Model.train, and in a loop of its own"),
        (before_model_train, "the script trains in a loop of its own, and by Model.train"),
        (a_gradient_that_failed, "a second gradient was computed in step 1"),
    ],
)
def test_a_loop_with_several_meanings_is_not_counted(
    job: Make, events: Events, habit: Callable[[Job], None], reason: str
) -> None:
    own = job()
    habit(own)
    assert reason in unclear(events)
    before = len(events("step.begin"))
    own.step(own.framework.made[0])
    own.source.finish()
    assert len(events("step.begin")) == before
    assert not events("train.end") and not events("steps.none")


def test_with_two_optimizers_not_even_the_first_step_is_counted(job: Make, events: Events) -> None:
    own = job()
    first, _ = own.optimizer(), own.optimizer()
    own.step(first)
    assert "there are two optimizers" in unclear(events)
    assert not events("step.begin")


def test_an_accumulation_that_the_scenario_names_needs_lines(job: Make, events: Events) -> None:
    own = job(per_update=2)
    own.step(own.optimizer())
    assert "job.steps_per_update is 2" in unclear(events)


@pytest.mark.parametrize("lines", [True, False])
def test_nothing_is_counted_while_something_else_counts(job: Make, events: Events, lines: bool) -> None:
    own = job()
    optimizer = own.optimizer()
    if lines:
        own.source.lines = True
        accumulates(own)
    else:
        with own.source.model_train():
            own.step(optimizer)
            own.compiled(lambda: optimizer(1), "global_step")
    assert not events("step.begin") and not events("steps.unclear")


@pytest.mark.parametrize("in_model", [True, False])
def test_an_update_within_model_train_is_a_point_where_no_device_layer_comes_to_it(
    job: Make, events: Events, in_model: bool
) -> None:
    own = job({"fault": "kill", "step": 4, "phase": "optimizer.update"}, in_model=in_model)
    optimizer = own.optimizer()
    with own.source.model_train():
        own.training.begin(3, [])
        own.training.step_begin(4)
        own.update(optimizer)
    assert len(events("barrier.reached")) == int(in_model)


def test_gradients_without_an_optimizer_are_no_steps_and_said(job: Make, events: Events) -> None:
    own = job()
    own.gradient()
    own.gradient()
    own.source.finish()
    assert events("steps.none")[0].data == {"model_train": False, "lines": False, "gradients": True}


# The number of the first step.


def test_steps_go_on_after_the_optimizers_updates(job: Make, events: Events) -> None:
    own = job(resumed=True)
    own.training.load("x.ckpt", lambda: {"step_num": 3})
    own.step(own.optimizer(done=5))
    assert events("train.begin")[0].data == {"initial_step": 5}
    assert steps(events) == [6]


def test_a_checkpoint_says_the_step_where_the_optimizer_does_not(job: Make, events: Events) -> None:
    own = job(resumed=True)
    own.training.load("x.ckpt", lambda: {"step_num": 3})
    own.framework.made.append(Uncounted(own.weight))
    own.step(own.framework.made[0])
    assert steps(events) == [4]


def test_a_fresh_job_that_loads_pretrained_weights_begins_with_step_1(job: Make, events: Events) -> None:
    own = job()
    own.training.load("pretrained.ckpt", lambda: {"step_num": 900})
    own.step(own.optimizer())
    assert steps(events) == [1]


def test_a_resume_without_a_load_begins_with_step_1(job: Make, events: Events) -> None:
    own = job(resumed=True)
    own.step(own.optimizer())
    assert steps(events) == [1]


def test_a_resume_whose_step_nothing_says_is_not_counted(job: Make, events: Events, tmp_path: Path) -> None:
    own = job(resumed=True)
    own.training.load(str(tmp_path / "x.ckpt"), dict)
    own.step(own.optimizer())
    assert "a checkpoint was loaded that has no step_num, and the optimizer Momentum has counted no" in unclear(events)


def test_a_resume_that_lost_the_optimizers_count_goes_on_from_the_step_of_the_file(
    job: Make, events: Events, tmp_path: Path
) -> None:
    """The optimizer's state is lost, not the step: a checkpoint without it is found by the record of its save."""
    own = job(resumed=True)
    own.saves[str(tmp_path / "x")] = Save(3)
    own.training.load(str(tmp_path / "pretrained.ckpt"), dict)
    own.training.load(str(tmp_path / "x.ckpt"), dict)
    own.step(own.optimizer())
    assert steps(events) == [4]


def test_a_resume_that_has_read_files_of_two_steps_is_not_counted(job: Make, events: Events, tmp_path: Path) -> None:
    own = job(resumed=True)
    own.saves.update({str(tmp_path / "x"): Save(3), str(tmp_path / "y"): Save(6)})
    for file in ("x.ckpt", "y.ckpt"):
        own.training.load(str(tmp_path / file), dict)
    own.step(own.optimizer())
    assert "a checkpoint was loaded that has no step_num" in unclear(events)


def test_compiled_steps_of_an_optimizer_without_a_counter_are_counted(job: Make, events: Events) -> None:
    own = job()
    optimizer = Uncounted(own.weight)
    own.framework.made.append(optimizer)
    for _ in range(2):
        own.compiled(lambda: optimizer(1), "moments")
    assert steps(events) == [1, 2]


def test_the_loss_is_the_first_of_the_results() -> None:
    assert first_leaf(((1, 2), 3)) == first_leaf([1]) == first_leaf(1) == 1
    assert first_leaf(()) is None
