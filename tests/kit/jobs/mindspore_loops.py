"""Loops of many habits in one MindSpore process, each counted anew; prints what the agent recorded of each, as JSON.

Run as a program by tests/rehearsal/own_jobs/test_own_loops.py, with a directory for the records.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chaos.agent.after_import import AfterImport
from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests
from chaos.agent.loop_hooks import Optimizers, install_loop_hooks
from chaos.agent.loops import Loop
from chaos.agent.record import Record
from chaos.agent.step_source import StepSource
from chaos.agent.training import Training


class Switch:
    """The loop that is counted at present."""

    def __init__(self) -> None:
        self.loop: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loop, name)


SWITCH: Any = Switch()
OPTIMIZERS: Any = Switch()
IMPORTS = AfterImport()
IMPORTS.install()
install_loop_hooks(IMPORTS, SWITCH, OPTIMIZERS)

import mindspore as ms  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, experimental, nn, ops  # noqa: E402

X, Y = Tensor(np.ones((3, 4), np.float32)), Tensor(np.ones((3, 2), np.float32))
Habit = Callable[[nn.Cell, Any], None]
HABITS: dict[str, tuple[Habit, int, Callable[[Any], Any]]] = {}


def momentum(weights: Any) -> Any:
    return nn.Momentum(weights, 0.1, 0.9)


class Around(nn.Optimizer):  # type: ignore[misc]
    """An optimizer that lets another one do the work."""

    def __init__(self, inner: Any) -> None:
        super().__init__(0.1, inner.parameters)
        self.inner = inner

    def construct(self, gradients: Any) -> Any:
        return self.inner(gradients)


def habit(mode: int = ms.PYNATIVE_MODE, optimizer: Callable[[Any], Any] = momentum) -> Callable[[Habit], Habit]:
    def register(function: Habit) -> Habit:
        HABITS[function.__name__] = function, mode, optimizer
        return function

    return register


def with_loss(network: nn.Cell) -> Callable[..., Any]:
    criterion = nn.MSELoss()

    def forward(inputs: Tensor, labels: Tensor) -> Any:
        outputs = network(inputs)
        return criterion(outputs, labels), outputs

    return forward


def functional(network: nn.Cell, optimizer: Any) -> Callable[..., Any]:
    gradients = ms.value_and_grad(with_loss(network), None, optimizer.parameters, has_aux=True)

    def train_step(inputs: Tensor, labels: Tensor) -> Any:
        (loss, _), grads = gradients(inputs, labels)
        optimizer(grads)
        return loss

    return train_step


def twice(step: Callable[..., Any]) -> None:
    for _ in range(2):
        step(X, Y)


@habit()
def value_and_grad(network: nn.Cell, optimizer: Any) -> None:
    twice(functional(network, optimizer))


@habit(ms.GRAPH_MODE)
def value_and_grad_in_graph_mode(network: nn.Cell, optimizer: Any) -> None:
    twice(functional(network, optimizer))


@habit()
def compiled_step_and_evaluation(network: nn.Cell, optimizer: Any) -> None:
    evaluate = ms.jit(with_loss(network))
    step = ms.jit(functional(network, optimizer))
    for _ in range(2):
        step(X, Y)
        evaluate(X, Y)


@habit()
def compiled_gradient(network: nn.Cell, optimizer: Any) -> None:
    gradients = ms.value_and_grad(with_loss(network), None, optimizer.parameters, has_aux=True)

    def forward_and_backward(inputs: Tensor, labels: Tensor) -> Any:
        return gradients(inputs, labels)

    compiled = ms.jit(forward_and_backward)
    for _ in range(2):
        _, grads = compiled(X, Y)
        optimizer(ops.clip_by_global_norm(grads, 1.0))


@habit(optimizer=lambda weights: experimental.optim.Adam(weights, lr=0.1))
def grad_operation(network: nn.Cell, optimizer: Any) -> None:
    forward = nn.WithLossCell(network, nn.MSELoss())
    gradients = ops.GradOperation(get_by_list=True)(forward, optimizer.parameters)
    for _ in range(2):
        optimizer(gradients(X, Y))


@habit()
def train_one_step_cell(network: nn.Cell, optimizer: Any) -> None:
    twice(nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), optimizer))


@habit(ms.GRAPH_MODE)
def train_one_step_cell_in_graph_mode(network: nn.Cell, optimizer: Any) -> None:
    twice(nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), optimizer))


@habit(optimizer=lambda weights: Around(momentum(weights)))
def an_optimizer_round_another(network: nn.Cell, optimizer: Any) -> None:
    twice(functional(network, optimizer))


@habit()
def evaluation_only(network: nn.Cell, optimizer: Any) -> None:
    del optimizer
    twice(with_loss(network))
    twice(ms.jit(with_loss(network)))


@habit()
def accumulation(network: nn.Cell, optimizer: Any) -> None:
    gradients = ms.value_and_grad(with_loss(network), None, optimizer.parameters, has_aux=True)
    _, first = gradients(X, Y)
    _, second = gradients(X, Y)
    optimizer(tuple(one + other for one, other in zip(first, second, strict=True)))


@habit()
def two_optimizers(network: nn.Cell, optimizer: Any) -> None:
    other = nn.Dense(4, 2)
    discriminate = functional(other, momentum(other.trainable_params()))
    generate = functional(network, optimizer)
    discriminate(X, Y)
    generate(X, Y)


def count(name: str, directory: Path) -> dict[str, Any]:
    """What the agent records of a habit: steps, losses, names of the state, and why it does not count."""
    function, mode, optimizer = HABITS[name]
    place = directory / name
    place.mkdir()
    record = Record(str(place), run="r", attempt="train", rank=0)
    armed = [{"fault": "kill", "step": 2, "phase": phase} for phase in ("forward", "optimizer.update", "step.end")]
    barriers = Barriers(record, None, armed)
    training = Training(record, barriers, Digests(record, 1))
    source = StepSource(record, training)
    OPTIMIZERS.loop = Optimizers()
    SWITCH.loop = Loop(training, source, OPTIMIZERS, resumed=False, armed=barriers.armed_phases)
    ms.set_context(mode=mode)
    ms.set_seed(1)
    network = nn.SequentialCell(nn.Dense(4, 3), nn.BatchNorm1d(3), nn.Dense(3, 2)).set_train()
    function(network, optimizer(network.trainable_params()))
    source.finish()
    record.close()
    (file,) = place.iterdir()
    events = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    digests = [event for event in events if event["event"] == "digest"]
    return {
        "steps": [[event["event"], event["step"]] for event in events if event["event"] in ("step.begin", "step.end")],
        "phases": [event["phase"] for event in events if event["event"] == "barrier.reached"],
        "losses": [event["loss"] for event in digests],
        "batches": sum(event["batch"] is not None for event in digests),
        "state": sorted(digests[0]["parameters"]) if digests else [],
        "moved": len({json.dumps(event["parameters"]) for event in digests}),
        "unclear": [event["reason"] for event in events if event["event"] == "steps.unclear"],
    }


if __name__ == "__main__":
    ms.set_device("CPU")
    print(json.dumps({name: count(name, Path(sys.argv[1])) for name in HABITS}))
