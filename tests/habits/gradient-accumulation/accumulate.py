"""Gradients of two micro-batches are added up for each update; the script reports its steps by three lines."""

import argparse
from pathlib import Path

import chaos_steps
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_rank, init

ACCUMULATE = 2

parser = argparse.ArgumentParser()
parser.add_argument("--updates", type=int, default=9)
parser.add_argument("--save-updates", type=int, default=3)
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
init()
ms.set_seed(6)
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 1))
optimizer = nn.Momentum(net.trainable_params(), 0.02, 0.9)
reducer = nn.DistributedGradReducer(optimizer.parameters)
mse = nn.MSELoss()
grad_fn = ms.value_and_grad(lambda x, y: mse(net(x), y), None, optimizer.parameters)
folder = Path("accumulated")
done = 0
if args.resume:
    done = max(int(path.stem) for path in folder.glob("*.ckpt"))
    saved = ms.load_checkpoint(str(folder / f"{done}.ckpt"))
    ms.load_param_into_net(net, saved)
    ms.load_param_into_net(optimizer, saved)
chaos_steps.state_is(net, optimizer)
for update in range(done + 1, args.updates + 1):
    generators = [np.random.default_rng([update, part, get_rank()]) for part in range(ACCUMULATE)]
    batch = [generator.normal(size=(4, 8)).astype(np.float32) for generator in generators]
    chaos_steps.step_begins(update, batch)
    total, losses = None, []
    for x in batch:
        loss, grads = grad_fn(Tensor(x), Tensor(x.sum(axis=1, keepdims=True)))
        total = grads if total is None else tuple(ops.add(a, b) for a, b in zip(total, grads, strict=True))
        losses.append(float(loss.asnumpy()))
    optimizer(reducer(tuple(grad / ACCUMULATE for grad in total)))
    chaos_steps.step_ends(sum(losses) / ACCUMULATE)
    if update % args.save_updates == 0 and get_rank() == 0:
        folder.mkdir(exist_ok=True)
        parts = {**net.parameters_dict(), **optimizer.parameters_dict()}
        ms.save_checkpoint([{"name": k, "data": v} for k, v in parts.items()], str(folder / f"{update}.ckpt"))
