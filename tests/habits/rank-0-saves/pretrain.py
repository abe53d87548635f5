"""Rank 0 alone saves; started again, every rank loads the newest file that rank 0 has saved."""

import argparse
import glob
import os

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import CheckpointConfig, LossMonitor, Model, ModelCheckpoint

EPOCHS = 3
BATCH = 8
STEPS_PER_EPOCH = 4

parser = argparse.ArgumentParser()
parser.add_argument("--ckpt-dir", default="ckpt")
parser.add_argument("--continue-training", action="store_true")
args = parser.parse_args()

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
init()
rank, size = get_rank(), get_group_size()
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
ms.set_seed(7)

rng = np.random.default_rng(7)
x = rng.normal(size=(STEPS_PER_EPOCH * BATCH * size, 16)).astype(np.float32)
y = (x.sum(axis=1) > 0).astype(np.int32)
data = ds.NumpySlicesDataset((x, y), shuffle=False, num_shards=size, shard_id=rank).batch(BATCH)

net = nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dense(32, 2))
opt = nn.Momentum(net.trainable_params(), 0.05, 0.9)
model = Model(net, nn.CrossEntropyLoss(), opt)

done_epochs = 0
if args.continue_training:
    last = max(glob.glob(os.path.join(args.ckpt_dir, "*.ckpt")), key=os.path.getmtime)
    params = ms.load_checkpoint(last)
    ms.load_param_into_net(net, params)
    ms.load_param_into_net(opt, params)
    done_epochs = int(params["global_step"].asnumpy()[0]) // STEPS_PER_EPOCH

callbacks = [LossMonitor()]
if rank == 0:
    callbacks.append(ModelCheckpoint("net", args.ckpt_dir, CheckpointConfig(save_checkpoint_steps=STEPS_PER_EPOCH)))
model.train(EPOCHS, data, callbacks=callbacks, dataset_sink_mode=False, initial_epoch=done_epochs)
