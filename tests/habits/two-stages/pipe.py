"""Two stages by hand: rank 0 has the first layers, rank 1 the last ones and the loss; each saves its own part.

A step begins, by the line of chaos_steps, where no stage waits for another.
"""

import argparse
import os

import chaos_steps
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_rank, init

parser = argparse.ArgumentParser()
parser.add_argument("--iters", type=int, default=8)
parser.add_argument("--snapshot-iters", type=int, default=3)
parser.add_argument("--restart", action="store_true")
args = parser.parse_args()
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
init()
stage = get_rank()
ms.set_seed(3)
whole = [nn.Dense(6, 10), nn.Dense(10, 1)]
layer = whole[stage]
optimizer = nn.SGD(layer.trainable_params(), learning_rate=0.05, momentum=0.9)
all_reduce = ops.AllReduce()
mse = nn.MSELoss()
folder = f"stage{stage}"


def exchange(value, shape):
    """Both ranks add up: the one that has a value gives it, the other one gives zeros."""
    return all_reduce(value if value is not None else ops.zeros(shape, ms.float32))


def first_loss(x, gradient):
    return (ops.tanh(layer(x)) * gradient).sum()


def last_loss(hidden, y):
    return mse(layer(hidden), y)


grad_first = ms.value_and_grad(first_loss, None, optimizer.parameters)
grad_last = ms.value_and_grad(last_loss, 0, optimizer.parameters)
begin = 0
if args.restart:
    begin = max(int(name.split(".")[0]) for name in os.listdir(folder))
    ms.load_checkpoint(f"{folder}/{begin}.ckpt", layer)
    ms.load_checkpoint(f"{folder}/{begin}.ckpt", optimizer)
chaos_steps.state_is(layer, optimizer)
for i in range(begin, args.iters):
    rng = np.random.default_rng(i)
    x = Tensor(rng.normal(size=(4, 6)).astype(np.float32))
    chaos_steps.step_begins(i + 1, x)
    y = Tensor(x.asnumpy().sum(axis=1, keepdims=True))
    hidden = exchange(ops.tanh(layer(x)) if stage == 0 else None, (4, 10))
    if stage == 1:
        loss, (by_hidden, grads) = grad_last(hidden, y)
        print("iter", i + 1, "loss", loss, flush=True)
        exchange(by_hidden, (4, 10))
    else:
        loss, grads = grad_first(x, exchange(None, (4, 10)))
    optimizer(grads)
    chaos_steps.step_ends(loss if stage == 1 else None)
    if (i + 1) % args.snapshot_iters == 0:
        os.makedirs(folder, exist_ok=True)
        parts = {**layer.parameters_dict(), **optimizer.parameters_dict()}
        ms.save_checkpoint([{"name": k, "data": v} for k, v in parts.items()], f"{folder}/{i + 1}.ckpt")
