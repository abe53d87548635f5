"""A training script of MindSpore with its fault tolerance, as anybody may have it on Ascend: --is-recover goes on.

It knows nothing of chaos. On a CPU MindSpore refuses the fault tolerance; there it runs in a rehearsal only.
"""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import (
    Callback,
    CheckpointConfig,
    LossMonitor,
    Model,
    ModelCheckpoint,
    RunContext,
    TrainFaultTolerance,
)

_BATCH = 16


class LastStep(Callback):  # type: ignore[misc]
    """Ends the training after all steps, counted by the optimizer: a checkpoint sets its counter."""

    def __init__(self, steps: int, optimizer: nn.Optimizer) -> None:
        super().__init__()
        self._steps = steps
        self._optimizer = optimizer

    def on_train_step_end(self, run_context: RunContext) -> None:
        if int(self._optimizer.global_step.asnumpy().reshape(-1)[0]) >= self._steps:
            run_context.request_stop()


def end_of_life(output: Path) -> dict[str, Any]:
    """The newest finished end-of-life checkpoint. With data parallelism alone any rank's file will do."""
    found = {
        int(match[1]): path
        for path in sorted(output.glob("t[tf][pt]_saved_checkpoints-step_*/rank_*/*.ckpt"))
        if (match := re.search(r"step_(\d+)$", path.parent.parent.name))
    }
    if not found:
        raise FileNotFoundError(f"no finished end-of-life checkpoint in {output}")
    saved: dict[str, Any] = ms.load_checkpoint(str(found[max(found)]))
    return saved


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network on made-up data, with fault tolerance.")
    parser.add_argument("--device", default="Ascend")
    parser.add_argument("--output", type=Path, default=Path("checkpoints"))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--checkpoint-interval", type=int, default=0)
    parser.add_argument("--is-recover", type=int, default=0, choices=[1, 0])
    arguments, _ = parser.parse_known_args()
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
    momentum = TrainFaultTolerance.get_optimizer_wrapper(nn.Momentum)
    optimizer = momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9)
    step = 0
    if arguments.is_recover:
        saved = end_of_life(arguments.output)
        step = int(saved["step_num"])
        ms.load_param_into_net(network, saved)
        ms.load_param_into_net(optimizer, saved)
        data.set_init_step(step)
    callbacks = [
        LossMonitor(1),
        LastStep(arguments.steps, optimizer),
        TrainFaultTolerance(str(arguments.output), initial_step=step),
    ]
    if arguments.checkpoint_interval:
        configuration = CheckpointConfig(arguments.checkpoint_interval, integrated_save=False)
        callbacks.append(ModelCheckpoint("net", str(arguments.output / f"rank_{rank}"), configuration))
    model = Model(network, nn.CrossEntropyLoss(), optimizer)
    epochs = math.ceil(arguments.steps / data.get_dataset_size())
    model.train(epochs, data, callbacks=callbacks, dataset_sink_mode=False, initial_epoch=0)


if __name__ == "__main__":
    main()
