"""A training script of MindSpore that accumulates gradients, with its fault tolerance: --is-recover goes on.

The optimizer is called once in --accumulate steps of the training loop. It knows nothing of chaos. On a CPU MindSpore
refuses the fault tolerance; there it runs in a rehearsal only.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Tensor, nn, ops
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
from mindspore.utils import _tft_handler

_BATCH = 16


class AccumulatedStep(nn.TrainOneStepCell):  # type: ignore[misc]
    """One batch a call; where ``updates`` is set, the optimizer takes the mean of the gradients since its last call."""

    def __init__(self, network: nn.Cell, optimizer: nn.Optimizer, steps_per_update: int) -> None:
        super().__init__(network, optimizer)
        self.accu_grads = self.weights.clone(prefix="accu_grads", init="zeros")
        self.gradients = ops.value_and_grad(self.network, None, self.weights)
        self.steps_per_update = steps_per_update
        self.updates = False

    def construct(self, *inputs: Tensor) -> Tensor:
        loss, gradients = self.gradients(*inputs)
        for own, gradient in zip(self.accu_grads, self.grad_reducer(gradients), strict=True):
            ops.assign_add(own, gradient)
        if self.updates:
            self.optimizer(tuple(own / self.steps_per_update for own in self.accu_grads))
            for own in self.accu_grads:
                ops.assign(own, ops.zeros_like(own))
        return loss


class Steps(Callback):  # type: ignore[misc]
    """Says in which steps an update is made, and ends the training after all steps.

    The training loop counts from 0 in a job that is started again, and from the job's first step after a repair.
    """

    def __init__(self, cell: AccumulatedStep, steps: int, done: int) -> None:
        super().__init__()
        self._cell = cell
        self._steps = steps
        self._done = done

    def on_train_begin(self, run_context: RunContext) -> None:
        if run_context.original_args().cur_step_num:
            self._done = 0

    def on_train_step_begin(self, run_context: RunContext) -> None:
        self._cell.updates = (run_context.original_args().cur_step_num + self._done) % self._cell.steps_per_update == 0

    def on_train_step_end(self, run_context: RunContext) -> None:
        if run_context.original_args().cur_step_num + self._done >= self._steps:
            run_context.request_stop()


def newest(output: Path) -> dict[str, Any]:
    """The checkpoint of the latest step, an end-of-life or a periodic one. With data parallelism any rank's will do."""
    finished = [*output.glob("t[tf][pt]_saved_checkpoints-step_*[0-9]/rank_*/*.ckpt"), *output.glob("rank_*/*.ckpt")]
    saved = [ms.load_checkpoint(str(path)) for path in sorted(finished)]
    return max(saved, key=lambda one: int(one["step_num"]), default={})


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network, accumulating gradients, with fault tolerance.")
    parser.add_argument("--device", default="Ascend")
    parser.add_argument("--output", type=Path, default=Path("checkpoints"))
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--checkpoint-interval", type=int, default=0)
    parser.add_argument("--is-recover", type=int, default=0, choices=[1, 0])
    parser.add_argument("--continue", dest="go_on", action="store_true", help="go on from a periodic checkpoint")
    arguments, _ = parser.parse_known_args()
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device(arguments.device)
    switches = os.getenv("MS_ENABLE_TFT", "")
    if "ARF:1" in switches:
        _tft_handler.init(config=None)
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
    protected = any(f"{name}:1" in switches for name in ("TTP", "UCE", "HCCE", "ARF"))
    momentum = TrainFaultTolerance.get_optimizer_wrapper(nn.Momentum) if protected else nn.Momentum
    optimizer = momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9)
    cell = AccumulatedStep(nn.WithLossCell(network, nn.CrossEntropyLoss()), optimizer, arguments.accumulate)
    step = 0
    if (arguments.is_recover or arguments.go_on) and (saved := newest(arguments.output)):
        step = int(saved["step_num"])
        ms.load_param_into_net(cell, saved)
        data.set_init_step(step)
    callbacks = [LossMonitor(1), Steps(cell, arguments.steps, step)]
    if protected:
        callbacks.append(TrainFaultTolerance(str(arguments.output), initial_step=step))
    if arguments.checkpoint_interval:
        configuration = CheckpointConfig(
            arguments.checkpoint_interval, integrated_save=False, append_info=[{"epoch_num": 0, "step_num": step}]
        )
        callbacks.append(ModelCheckpoint("net", str(arguments.output / f"rank_{rank}"), configuration))
    Model(cell.set_train()).train(1, data, callbacks=callbacks, dataset_sink_mode=False)


if __name__ == "__main__":
    main()
