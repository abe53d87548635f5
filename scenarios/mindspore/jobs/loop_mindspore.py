"""A training script of MindSpore with a loop of its own, without ``Model.train``: value_and_grad and an optimizer.

It knows nothing of chaos. With --resume it goes on from the newest periodic checkpoint that its rank has saved.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Tensor, nn
from mindspore.communication import get_group_size, get_rank, init

_BATCH = 16


def done(optimizer: nn.Optimizer) -> int:
    return int(optimizer.global_step.asnumpy().reshape(-1)[0])


def newest(directory: Path) -> Path:
    """The checkpoint with the highest step in its name."""
    saved = list(directory.glob("net-*.ckpt"))
    if not saved:
        raise FileNotFoundError(f"no checkpoint in {directory}")
    return max(saved, key=lambda path: int(path.stem.rsplit("_", 1)[1]))


def step_function(network: nn.Cell, optimizer: nn.Optimizer, mode: str) -> Callable[[Tensor, Tensor], Tensor]:
    """One step: loss and gradients of a batch, their mean over the ranks, an update."""
    criterion = nn.CrossEntropyLoss()
    reducer = nn.DistributedGradReducer(optimizer.parameters)

    def forward(inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        logits = network(inputs)
        return criterion(logits, labels), logits

    gradients_of = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)

    def train_step(inputs: Tensor, labels: Tensor) -> Tensor:
        (loss, _), gradients = gradients_of(inputs, labels)
        optimizer(reducer(gradients))
        return loss

    return ms.jit(train_step) if mode == "jit" else train_step


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network on made-up data, in a loop of its own.")
    parser.add_argument("--device", default="Ascend")
    parser.add_argument("--mode", choices=("pynative", "jit", "graph"), default="pynative")
    parser.add_argument("--output", type=Path, default=Path("checkpoints"))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--save-steps", type=int, default=4)
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    ms.set_context(mode=ms.GRAPH_MODE if arguments.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_device(arguments.device)
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    ms.set_seed(1)

    size, rank = get_group_size(), get_rank()
    source = np.random.default_rng(1)
    inputs = source.normal(size=(arguments.steps * _BATCH * size, 32)).astype(np.float32)
    labels = (inputs @ source.normal(size=(32, 10))).argmax(axis=1).astype(np.int32)
    data = ds.NumpySlicesDataset((inputs, labels), shuffle=False, num_shards=size, shard_id=rank)
    data = data.batch(_BATCH, num_parallel_workers=1)

    network = nn.SequentialCell(nn.Dense(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dense(64, 10)).set_train()
    optimizer = nn.Momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9)
    directory = arguments.output / f"rank_{rank}"
    directory.mkdir(parents=True, exist_ok=True)
    if arguments.resume:
        saved: dict[str, Any] = ms.load_checkpoint(str(newest(directory)))
        ms.load_param_into_net(network, saved)
        ms.load_param_into_net(optimizer, saved)
    first = done(optimizer)
    train_step = step_function(network, optimizer, arguments.mode)
    for step, batch in enumerate(data.create_tuple_iterator(num_epochs=1), start=1):
        if step <= first:
            continue
        loss = train_step(*batch)
        print(f"epoch: 1 step: {step}, loss is {float(loss)}", flush=True)
        if step % arguments.save_steps == 0:
            state = {**network.parameters_dict(), **optimizer.parameters_dict()}
            parts = [{"name": name, "data": parameter} for name, parameter in state.items()]
            ms.save_checkpoint(parts, str(directory / f"net-1_{step}.ckpt"))


if __name__ == "__main__":
    main()
