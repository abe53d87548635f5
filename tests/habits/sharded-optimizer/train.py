"""Each rank keeps the optimizer's state of half of the parameters, updates those, and broadcasts them.

The weights change behind the update, so the script says by chaos_steps where a step ends.
"""

import argparse
import os

import chaos_steps
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.communication import get_group_size, get_rank, init


def shard(params, rank, size):
    return [param for number, param in enumerate(params) if number % size == rank]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train_steps", type=int, default=9)
    parser.add_argument("--ckpt_interval", type=int, default=3)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    init()
    rank, size = get_rank(), get_group_size()
    ms.set_seed(8)
    net = nn.SequentialCell(nn.Dense(6, 12), nn.Tanh(), nn.Dense(12, 2))
    everything = net.trainable_params()
    optimizer = nn.Adam(shard(everything, rank, size), learning_rate=0.02)
    all_reduce = ops.AllReduce()
    broadcasts = [ops.Broadcast(root) for root in range(size)]
    mse = nn.MSELoss()
    gradients_of = ms.value_and_grad(lambda x, y: mse(net(x), y), None, ms.ParameterTuple(everything))
    folder = f"zero/rank_{rank}"
    done = 0
    if args.resume:
        done = max(int(name[4:-5]) for name in os.listdir(folder) if name.endswith(".ckpt"))
        state = ms.load_checkpoint(f"{folder}/zero{done}.ckpt")
        ms.load_param_into_net(net, state)
        ms.load_param_into_net(optimizer, state)
    chaos_steps.state_is(net, optimizer)
    for step in range(done + 1, args.train_steps + 1):
        rng = np.random.default_rng([step, rank])
        x = rng.normal(size=(4, 6)).astype(np.float32)
        chaos_steps.step_begins(step, x)
        loss, gradients = gradients_of(Tensor(x), Tensor(x[:, :2]))
        mean = [all_reduce(gradient) / size for gradient in gradients]
        optimizer(tuple(shard(mean, rank, size)))
        for number, param in enumerate(everything):
            ops.assign(param, broadcasts[number % size]((param.value(),))[0])
        chaos_steps.step_ends(loss)
        print("step", step, "loss", loss, flush=True)
        if step % args.ckpt_interval == 0:
            os.makedirs(folder, exist_ok=True)
            parts = {**net.parameters_dict(), **optimizer.parameters_dict()}
            ms.save_checkpoint([{"name": k, "data": v} for k, v in parts.items()], f"{folder}/zero{step}.ckpt")


if __name__ == "__main__":
    main()
