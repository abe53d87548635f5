"""A training script of MindSpore with dropout that is not bit-exact: data parallel, periodic checkpoints, --resume.

The masks are drawn by the step, so a resumed job draws those of the fault-free run. What a device's kernels do to the
last digits, by another order of sums in every run, the masks' scale does here: it differs by --noise from run to run.
--defect spoils the resume.
"""

from __future__ import annotations

import argparse
import zlib
from pathlib import Path
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import Callback, CheckpointConfig, LossMonitor, Model, ModelCheckpoint, RunContext

_BATCH, _WIDTH, _KEEP = 16, 64, 0.8


class Dropout(nn.Cell):  # type: ignore[misc]
    """Multiplies by the mask of the step."""

    def __init__(self) -> None:
        super().__init__()
        self.mask = ms.Tensor(np.ones((_BATCH, _WIDTH), np.float32))

    def construct(self, inputs: ms.Tensor) -> ms.Tensor:
        return inputs * self.mask


class Masks(Callback):  # type: ignore[misc]
    """Draws a mask for each step, and ends the training after all steps."""

    def __init__(self, layer: Dropout, optimizer: nn.Optimizer, steps: int, noise: float, behind: int) -> None:
        super().__init__()
        self._layer, self._optimizer, self._steps = layer, optimizer, steps
        self._noise, self._behind = noise, behind

    def on_train_step_begin(self, run_context: RunContext) -> None:
        step = done(self._optimizer)
        drawn = np.random.default_rng((1, get_rank(), step - self._behind)).random((_BATCH, _WIDTH)) < _KEEP
        # The directory names the run, so no two runs have the same noise.
        of_run = np.random.default_rng((zlib.crc32(str(Path.cwd()).encode()), get_rank(), step))
        mask = drawn / _KEEP * (1 + self._noise * of_run.normal(size=drawn.shape))
        self._layer.mask = ms.Tensor(mask.astype(np.float32))

    def on_train_step_end(self, run_context: RunContext) -> None:
        if done(self._optimizer) >= self._steps:
            run_context.request_stop()


def done(optimizer: nn.Optimizer) -> int:
    return int(optimizer.global_step.asnumpy().reshape(-1)[0])


def newest(directory: Path) -> dict[str, Any]:
    """The checkpoint with the highest step in its name."""
    path = max(directory.glob("*.ckpt"), key=lambda path: int(path.stem.rpartition("_")[2]))
    loaded: dict[str, Any] = ms.load_checkpoint(str(path))
    return loaded


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network with dropout.")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--noise", type=float, default=1e-4)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--defect", choices=("none", "masks", "moments", "batch"), default="none")
    arguments = parser.parse_args()
    defect = arguments.defect if arguments.resume else "none"
    ms.set_context(mode=ms.PYNATIVE_MODE, pynative_synchronize=True)
    ms.set_device("CPU")
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    ms.set_seed(1)

    size, rank = get_group_size(), get_rank()
    source = np.random.default_rng(1)
    inputs = source.normal(size=((arguments.steps + 1) * _BATCH * size, 32)).astype(np.float32)
    labels = (inputs @ source.normal(size=(32, 10))).argmax(axis=1).astype(np.int32)
    data = ds.NumpySlicesDataset((inputs, labels), shuffle=False, num_shards=size, shard_id=rank)
    data = data.batch(_BATCH, num_parallel_workers=1)

    dropout = Dropout()
    network = nn.SequentialCell(nn.Dense(32, _WIDTH), nn.ReLU(), dropout, nn.Dense(_WIDTH, 10))
    optimizer = nn.Momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9)
    directory, behind = Path("checkpoints") / f"rank_{rank}", 0
    if arguments.resume:
        saved = newest(directory)
        if defect == "moments":
            saved = {name: value for name, value in saved.items() if not name.startswith("moments.")}
        ms.load_param_into_net(network, saved)
        ms.load_param_into_net(optimizer, saved)
        behind = done(optimizer) if defect == "masks" else 0
        data.set_init_step(done(optimizer) + (defect == "batch"))
    callbacks = [
        LossMonitor(1),
        Masks(dropout, optimizer, arguments.steps, arguments.noise, behind),
        ModelCheckpoint("net", str(directory), CheckpointConfig(4, integrated_save=False)),
    ]
    model = Model(network, nn.CrossEntropyLoss(), optimizer)
    model.train(1, data, callbacks=callbacks, dataset_sink_mode=False)


if __name__ == "__main__":
    main()
