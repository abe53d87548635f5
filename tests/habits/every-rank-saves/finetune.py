"""Every rank saves into one directory, under a name with its rank; --resume_from names the directory."""

import argparse
import os

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import Callback, LossMonitor, Model


class SaveAll(Callback):
    def __init__(self, out, steps):
        super().__init__()
        self._out = out
        self._steps = steps

    def on_train_step_end(self, run_context):
        args = run_context.original_args()
        step = int(args.optimizer.global_step.asnumpy()[0])
        if step % self._steps != 0:
            return
        os.makedirs(self._out, exist_ok=True)
        ms.save_checkpoint(args.train_network, os.path.join(self._out, f"tune_rank{get_rank()}_{step}.ckpt"))


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=str, default="./saved")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps_per_epoch", type=int, default=6)
    parser.add_argument("--save_steps", type=int, default=4)
    parser.add_argument("--resume_from", type=str, default="")
    return parser.parse_args()


if __name__ == "__main__":
    args = get_args()
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    ms.set_seed(2)
    rank, size = get_rank(), get_group_size()
    rng = np.random.default_rng(2)
    x = rng.normal(size=(args.steps_per_epoch * 16 * size, 6)).astype(np.float32)
    y = (x @ rng.normal(size=(6, 3))).argmax(axis=1).astype(np.int32)
    data = ds.NumpySlicesDataset((x, y), shuffle=False, num_shards=size, shard_id=rank).batch(16)
    net = nn.SequentialCell(nn.Dense(6, 12), nn.ReLU(), nn.Dense(12, 3))
    opt = nn.RMSProp(net.trainable_params(), learning_rate=0.01)
    epoch = 0
    if args.resume_from:
        steps = [int(f[:-5].split("_")[2]) for f in os.listdir(args.resume_from) if f.startswith(f"tune_rank{rank}_")]
        params = ms.load_checkpoint(os.path.join(args.resume_from, f"tune_rank{rank}_{max(steps)}.ckpt"))
        ms.load_param_into_net(net, params)
        ms.load_param_into_net(opt, params)
        epoch = max(steps) // args.steps_per_epoch
        data.set_init_step(max(steps))
    callbacks = [LossMonitor(), SaveAll(args.out, args.save_steps)]
    Model(net, nn.CrossEntropyLoss(), opt).train(
        args.epochs, data, callbacks=callbacks, dataset_sink_mode=False, initial_epoch=epoch
    )
