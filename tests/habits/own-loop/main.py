"""A loop of its own over epochs, saved at the end of each; goes on by itself if a checkpoint is there."""

import os
import re

import mindspore
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_rank, init
from model import TinyNet

EPOCHS = 4
BATCHES = 5
OUT = "output"


def batches(epoch, rank):
    rng = np.random.RandomState(1000 * epoch + rank)
    for _ in range(BATCHES):
        x = rng.randn(6, 12).astype(np.float32)
        yield Tensor(x), Tensor(x.sum(axis=1, keepdims=True))


def last_epoch():
    if not os.path.isdir(OUT):
        return 0
    numbers = [int(match[1]) for name in os.listdir(OUT) if (match := re.match(r"epoch-(\d+)\.ckpt$", name))]
    return max(numbers, default=0)


def save(net, optimizer, epoch):
    if get_rank() != 0:
        return
    os.makedirs(OUT, exist_ok=True)
    params = [{"name": p.name, "data": p} for p in [*net.get_parameters(), *optimizer.get_parameters()]]
    unique = list({p["name"]: p for p in params}.values())
    mindspore.save_checkpoint(unique, os.path.join(OUT, f"epoch-{epoch}.ckpt"))


def train():
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE, device_target="CPU")
    init()
    mindspore.set_seed(5)
    net = TinyNet()
    loss_fn = nn.MSELoss()
    optimizer = nn.SGD(net.trainable_params(), learning_rate=0.02, momentum=0.9)
    mindspore.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)
    reducer = nn.DistributedGradReducer(optimizer.parameters)

    start = last_epoch()
    if start > 0:
        saved = mindspore.load_checkpoint(os.path.join(OUT, f"epoch-{start}.ckpt"))
        mindspore.load_param_into_net(net, saved)
        mindspore.load_param_into_net(optimizer, saved)

    def forward_fn(x, y):
        return loss_fn(net(x), y)

    grad_fn = ops.value_and_grad(forward_fn, None, optimizer.parameters)
    for epoch in range(start + 1, EPOCHS + 1):
        for i, (x, y) in enumerate(batches(epoch, get_rank())):
            loss, grads = grad_fn(x, y)
            optimizer(reducer(grads))
            print(f"epoch {epoch} step {i} loss {loss.asnumpy():.6f}", flush=True)
        save(net, optimizer, epoch)


train()
