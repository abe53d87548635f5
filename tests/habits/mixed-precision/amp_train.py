"""Mixed precision with a fixed loss scale, in a functional loop."""

import argparse
import os

import mindspore as ms
import numpy as np
from mindspore import Tensor, amp, nn
from mindspore.communication import get_rank, init

parser = argparse.ArgumentParser()
parser.add_argument("--max-steps", type=int, default=8)
parser.add_argument("--save-every", type=int, default=3)
parser.add_argument("--out-dir", default="amp_out")
parser.add_argument("--recover", type=int, default=0)
flags = parser.parse_args()

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
init()
ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
ms.set_seed(4)
model = nn.SequentialCell(nn.Dense(12, 24), nn.ReLU(), nn.Dense(24, 1))
model = amp.auto_mixed_precision(model, amp_level="O2", dtype=ms.float16)
optimizer = nn.AdamWeightDecay(model.trainable_params(), learning_rate=0.01)
reducer = nn.DistributedGradReducer(optimizer.parameters)
scaler = amp.StaticLossScaler(128.0)
criterion = nn.MSELoss()


def forward(x, y):
    return scaler.scale(criterion(model(x).astype(ms.float32), y))


value_and_grads = ms.value_and_grad(forward, None, optimizer.parameters)
path = os.path.join(flags.out_dir, f"rank_{get_rank()}")
first = 1
if flags.recover:
    last = max(int(name.split(".")[0]) for name in os.listdir(path))
    values = ms.load_checkpoint(os.path.join(path, f"{last}.ckpt"))
    ms.load_param_into_net(model, values)
    ms.load_param_into_net(optimizer, values)
    first = last + 1
for step in range(first, flags.max_steps + 1):
    rng = np.random.default_rng([step, get_rank()])
    x = rng.normal(size=(8, 12)).astype(np.float32)
    loss, grads = value_and_grads(Tensor(x), Tensor(x.mean(axis=1, keepdims=True)))
    optimizer(scaler.unscale(reducer(grads)))
    print("step", step, float(loss.asnumpy()) / 128, flush=True)
    if step % flags.save_every == 0:
        os.makedirs(path, exist_ok=True)
        parts = {**model.parameters_dict(), **optimizer.parameters_dict()}
        ms.save_checkpoint([{"name": k, "data": v} for k, v in parts.items()], os.path.join(path, f"{step}.ckpt"))
