"""A training script of MindSpore with two pipeline stages, and slices of the last layer if asked for, in its own loop.

It knows nothing of chaos. On a CPU MindSpore 2.10 has no Send and Receive, no Broadcast in a group, and no pipeline of
its own. So the stages pass activations and gradients on by AllReduce in groups of two, in which the receiver gives
zeros. Slices are added up by AllReduce, too. Only the last stage knows the loss, and prints it. With --resume each rank
goes on from the newest checkpoint of its own.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import create_group, get_group_size, get_rank, init

_BATCH, _FEATURES, _HIDDEN, _CLASSES = 16, 32, 64, 10
_STAGES = 2


def _group(name: str, ranks: range) -> str:
    create_group(name, list(ranks))
    return name


class Place:
    """A rank's place in the matrix of stage by data by slice, and its groups."""

    def __init__(self, rank: int, ranks: int, slices: int) -> None:
        size = ranks // _STAGES
        self.stage, rest = divmod(rank, size)
        self.data, self.slice = divmod(rest, slices)
        self.slices, self.parts = slices, size // slices
        first = self.stage * size
        # A rank can be in no group that it makes for others.
        self.pair = _group(f"pair-{rest}", range(rest, ranks, size))
        self.replicas = _group(f"replicas-{self.stage}-{self.slice}", range(first + self.slice, first + size, slices))
        row = first + self.data * slices
        self.row = _group(f"slices-{self.stage}-{self.data}", range(row, row + slices))
        self.give = ops.AllReduce(group=self.pair)


class First(nn.Cell):
    """The first stage: this rank's columns of the first layer."""

    def __init__(self, weight: np.ndarray) -> None:
        super().__init__()
        self.weight = ms.Parameter(Tensor(weight), name="first.weight")

    def construct(self, inputs: Tensor) -> Tensor:
        return ops.relu(ops.matmul(inputs, self.weight))


class Last(nn.Cell):
    """The last stage: the rows of the second layer that take these columns."""

    def __init__(self, weight: np.ndarray) -> None:
        super().__init__()
        self.weight = ms.Parameter(Tensor(weight), name="last.weight")

    def construct(self, hidden: Tensor) -> Tensor:
        return ops.matmul(hidden, self.weight)


class Stage:
    """One rank's layers, its optimizer, and a step of them."""

    def __init__(self, place: Place, optimizer: nn.Optimizer, network: nn.Cell) -> None:
        self._place = place
        self._network = network
        self._optimizer = optimizer
        self._mean = ops.AllReduce(group=place.replicas) if place.parts > 1 else None
        self._sum = ops.AllReduce(group=place.row) if place.slices > 1 else None
        criterion = nn.CrossEntropyLoss()

        def surrogate(inputs: Tensor, by_hidden: Tensor) -> Tensor:
            return (network(inputs) * by_hidden).sum()

        def loss(hidden: Tensor, labels: Tensor, others: Tensor) -> Tensor:
            return criterion(network(hidden) + others, labels)

        of = optimizer.parameters
        self._first = ms.value_and_grad(surrogate, None, of)
        self._last = ms.value_and_grad(loss, 0, of)

    def train(self, inputs: Tensor, labels: Tensor) -> Tensor | None:
        """One step; the loss of the last stage."""
        place = self._place
        if place.stage == 0:
            hidden = self._network(inputs)
            place.give(hidden)
            by_hidden = place.give(ops.zeros_like(hidden))
            _, gradients = self._first(inputs, by_hidden)
            self._update(gradients)
            return None
        hidden = place.give(ops.zeros((_BATCH, _HIDDEN // place.slices), ms.float32))
        own = self._network(hidden)
        others = ops.zeros_like(own) if self._sum is None else self._sum(own) - own
        loss, (by_hidden, gradients) = self._last(hidden, labels, others)
        place.give(by_hidden)
        self._update(gradients)
        return loss

    def _update(self, gradients: tuple[Tensor, ...]) -> None:
        if self._mean is not None:
            gradients = tuple(self._mean(gradient) / self._place.parts for gradient in gradients)
        self._optimizer(gradients)


def newest(directory: Path) -> Path:
    """The checkpoint with the highest step in its name."""
    saved = list(directory.glob("staged-*.ckpt"))
    if not saved:
        raise FileNotFoundError(f"no checkpoint in {directory}")
    return max(saved, key=lambda path: int(path.stem.rsplit("_", 1)[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network on made-up data, in two pipeline stages.")
    parser.add_argument("--slices", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("checkpoints"))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--save-steps", type=int, default=4)
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    init()
    rank = get_rank()
    place = Place(rank, get_group_size(), arguments.slices)
    source = np.random.default_rng(1)
    inputs = source.normal(size=(arguments.steps, place.parts, _BATCH, _FEATURES)).astype(np.float32)
    labels = (inputs @ source.normal(size=(_FEATURES, _CLASSES))).argmax(axis=-1).astype(np.int32)
    weights = (0.2 * source.normal(size=(_FEATURES, _HIDDEN)), 0.2 * source.normal(size=(_HIDDEN, _CLASSES)))
    width = _HIDDEN // place.slices
    own = slice(place.slice * width, (place.slice + 1) * width)
    first, last = (weight.astype(np.float32) for weight in weights)
    network: nn.Cell = First(first[:, own].copy()) if place.stage == 0 else Last(last[own].copy())
    optimizer = nn.Momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9)
    directory = arguments.output / f"rank_{rank}"
    directory.mkdir(parents=True, exist_ok=True)
    if arguments.resume:
        saved = ms.load_checkpoint(str(newest(directory)))
        ms.load_param_into_net(network, saved)
        ms.load_param_into_net(optimizer, saved)
    stage = Stage(place, optimizer, network)
    done = int(optimizer.global_step.asnumpy().reshape(-1)[0])
    for step in range(done + 1, arguments.steps + 1):
        loss = stage.train(Tensor(inputs[step - 1, place.data]), Tensor(labels[step - 1, place.data]))
        if loss is not None:
            print(f"epoch: 1 step: {step}, loss is {float(loss)}", flush=True)
        if step % arguments.save_steps == 0:
            state = {**network.parameters_dict(), **optimizer.parameters_dict()}
            parts = [{"name": name, "data": parameter} for name, parameter in state.items()]
            ms.save_checkpoint(parts, str(directory / f"staged-1_{step}.ckpt"))


if __name__ == "__main__":
    main()
