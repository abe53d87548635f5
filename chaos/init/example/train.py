"""A small training job: two ranks train a network on made-up data, and rank 0 saves a checkpoint every 4 steps.

It knows nothing of chaos. With --resume it goes on from its newest checkpoint.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import CheckpointConfig, LossMonitor, Model, ModelCheckpoint

BATCH = 16
STEPS_PER_EPOCH = 4


def made_up_data(size: int, rank: int) -> ds.Dataset:
    """Return this rank's share of the data, in the same order in every run."""
    draw = np.random.default_rng(1)
    inputs = draw.normal(size=(STEPS_PER_EPOCH * BATCH * size, 32)).astype(np.float32)
    labels = (inputs @ draw.normal(size=(32, 10))).argmax(axis=1).astype(np.int32)
    data = ds.NumpySlicesDataset((inputs, labels), shuffle=False, num_shards=size, shard_id=rank)
    return data.batch(BATCH, num_parallel_workers=1)


def newest(directory: Path) -> Path:
    """Return the checkpoint with the highest epoch in its name, net-EPOCH_STEP.ckpt."""
    return max(directory.glob("net-*.ckpt"), key=lambda path: int(path.stem.split("-")[1].split("_")[0]))


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("checkpoints"))
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint")
    arguments = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device(arguments.device)
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    ms.set_seed(1)

    network = nn.SequentialCell(nn.Dense(32, 64), nn.ReLU(), nn.Dense(64, 10))
    optimizer = nn.Momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9)
    model = Model(network, nn.CrossEntropyLoss(), optimizer)
    done = 0
    if arguments.resume:
        saved = ms.load_checkpoint(str(newest(arguments.output)))
        ms.load_param_into_net(network, saved)
        ms.load_param_into_net(optimizer, saved)
        done = int(optimizer.global_step.asnumpy().reshape(-1)[0]) // STEPS_PER_EPOCH
    callbacks = [LossMonitor(1)]
    if get_rank() == 0:
        config = CheckpointConfig(save_checkpoint_steps=STEPS_PER_EPOCH)
        callbacks.append(ModelCheckpoint("net", str(arguments.output), config))
    data = made_up_data(get_group_size(), get_rank())
    model.train(arguments.epochs, data, callbacks=callbacks, dataset_sink_mode=False, initial_epoch=done)


if __name__ == "__main__":
    main()
