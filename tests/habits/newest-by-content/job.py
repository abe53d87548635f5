"""Looks into every checkpoint and goes on from the one with the highest step in it, whatever its name."""

import glob
import os
import uuid

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.communication import get_rank, init

TOTAL_STEPS = 10
SAVE_EVERY = 4
FOLDER = "models"


def newest():
    found = [ms.load_checkpoint(name) for name in glob.glob(f"{FOLDER}/*.ckpt")]
    return max(found, key=lambda params: int(params["global_step"].asnumpy()[0]), default=None)


def data(step):
    rng = np.random.default_rng(100 * step + get_rank())
    x = rng.normal(size=(4, 5)).astype(np.float32)
    return Tensor(x), Tensor((2 * x).sum(axis=1, keepdims=True))


def run():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    ms.set_seed(9)
    net = nn.SequentialCell(nn.Dense(5, 10), nn.LeakyReLU(), nn.Dense(10, 1))
    optim = nn.Adagrad(net.trainable_params(), learning_rate=0.1)
    reducer = nn.DistributedGradReducer(optim.parameters)
    mse = nn.MSELoss()

    def compute(x, y):
        return mse(net(x), y)

    backward = ms.value_and_grad(compute, None, optim.parameters)
    saved = newest()
    if saved is not None:
        ms.load_param_into_net(net, saved)
        ms.load_param_into_net(optim, saved)
    step = int(optim.global_step.asnumpy()[0])
    while step < TOTAL_STEPS:
        loss, grads = backward(*data(step))
        optim(reducer(grads))
        step += 1
        print("loss", step, loss, flush=True)
        if step % SAVE_EVERY == 0 and get_rank() == 0:
            os.makedirs(FOLDER, exist_ok=True)
            everything = {**net.parameters_dict(), **optim.parameters_dict()}
            ms.save_checkpoint(
                [{"name": key, "data": value} for key, value in everything.items()],
                os.path.join(FOLDER, f"{uuid.uuid4().hex}.ckpt"),
            )


run()
