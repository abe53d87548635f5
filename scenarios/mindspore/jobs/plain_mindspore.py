"""A training script of MindSpore as anybody may have it: data parallel, periodic checkpoints, --resume.

It knows nothing of chaos. With --resume it goes on from the newest periodic checkpoint that its rank has saved.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import Callback, CheckpointConfig, LossMonitor, Model, ModelCheckpoint, RunContext

_BATCH = 16


class LastStep(Callback):  # type: ignore[misc]
    """Ends the training after all steps, counted by the optimizer: a checkpoint sets its counter."""

    def __init__(self, steps: int, optimizer: nn.Optimizer) -> None:
        super().__init__()
        self._steps = steps
        self._optimizer = optimizer

    def on_train_step_end(self, run_context: RunContext) -> None:
        if done(self._optimizer) >= self._steps:
            run_context.request_stop()


class Latest(Callback):  # type: ignore[misc]
    """Saves one file, anew under the same name every time."""

    def __init__(self, steps: int, optimizer: nn.Optimizer, directory: Path) -> None:
        super().__init__()
        self._steps = steps
        self._optimizer = optimizer
        self._path = directory / "latest.ckpt"

    def on_train_step_end(self, run_context: RunContext) -> None:
        if done(self._optimizer) % self._steps == 0:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            ms.save_checkpoint(run_context.original_args().train_network, str(self._path))


def done(optimizer: nn.Optimizer) -> int:
    return int(optimizer.global_step.asnumpy().reshape(-1)[0])


def newest(directory: Path) -> dict[str, Any]:
    """The checkpoint with the highest step in it."""
    saved = [ms.load_checkpoint(str(path)) for path in directory.glob("*.ckpt")]
    if not saved:
        raise FileNotFoundError(f"no checkpoint in {directory}")
    return max(saved, key=lambda one: int(one["global_step"].asnumpy().reshape(-1)[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network on made-up data.")
    parser.add_argument("--device", default="Ascend")
    parser.add_argument("--output", type=Path, default=Path("checkpoints"))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--save-steps", type=int, default=4)
    parser.add_argument("--keep", choices=("all", "latest"), default="all")
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
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

    network = nn.SequentialCell(nn.Dense(32, 64), nn.ReLU(), nn.Dense(64, 10))
    optimizer = nn.Momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9)
    directory = arguments.output / f"rank_{rank}"
    if arguments.resume:
        saved = newest(directory)
        ms.load_param_into_net(network, saved)
        ms.load_param_into_net(optimizer, saved)
        data.set_init_step(done(optimizer))
    if arguments.keep == "latest":
        save = Latest(arguments.save_steps, optimizer, directory)
    else:
        save = ModelCheckpoint("net", str(directory), CheckpointConfig(arguments.save_steps, integrated_save=False))
    callbacks = [LossMonitor(1), LastStep(arguments.steps, optimizer), save]
    model = Model(network, nn.CrossEntropyLoss(), optimizer)
    model.train(1, data, callbacks=callbacks, dataset_sink_mode=False)


if __name__ == "__main__":
    main()
