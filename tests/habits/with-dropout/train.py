"""Dropout whose generator no checkpoint keeps: two runs, and a run and its resume, draw other numbers."""

import argparse

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import CheckpointConfig, LossMonitor, Model, ModelCheckpoint

STEPS_PER_EPOCH = 5

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", default=4, type=int)
parser.add_argument("--ckpt", default=None, help="file to go on from, or 'latest'")
opt = parser.parse_args()


def build():
    return nn.SequentialCell(nn.Dense(30, 64), nn.ReLU(), nn.Dropout(p=0.1), nn.Dense(64, 5))


def load(net, optimizer, folder):
    from pathlib import Path

    file = opt.ckpt
    if file == "latest":
        file = str(max(Path(folder).glob("*.ckpt"), key=lambda path: path.stat().st_mtime_ns))
    values = ms.load_checkpoint(file)
    ms.load_param_into_net(net, values)
    ms.load_param_into_net(optimizer, values)
    return int(values["global_step"].asnumpy()[0]) // STEPS_PER_EPOCH


ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
init()
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
ms.set_seed(1)
rng = np.random.default_rng(1)
x = rng.normal(size=(STEPS_PER_EPOCH * 32 * get_group_size(), 30)).astype(np.float32)
y = (x @ rng.normal(size=(30, 5))).argmax(axis=1).astype(np.int32)
loader = ds.NumpySlicesDataset((x, y), shuffle=False, num_shards=get_group_size(), shard_id=get_rank()).batch(32)
net = build()
optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)
folder = f"ckpt_{get_rank()}"
begin = load(net, optimizer, folder) if opt.ckpt else 0
model = Model(net, nn.CrossEntropyLoss(), optimizer)
saver = ModelCheckpoint("drop", folder, CheckpointConfig(save_checkpoint_steps=STEPS_PER_EPOCH))
model.train(opt.epochs, loader, callbacks=[LossMonitor(), saver], dataset_sink_mode=False, initial_epoch=begin)
