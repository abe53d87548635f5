"""save_checkpoint in the format safetensors, every few steps, by a callback of Model.train."""

import argparse
from pathlib import Path

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.communication import get_group_size, get_rank, init
from mindspore.train import Callback, Model


class Saver(Callback):
    def __init__(self, every, folder):
        super().__init__()
        self.every = every
        self.folder = folder

    def step_end(self, run_context):
        params = run_context.original_args()
        step = int(params.optimizer.global_step.asnumpy()[0])
        print("step", step, "loss", params.net_outputs, flush=True)
        if step % self.every == 0:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = self.folder / f"step_{step:05d}"
            ms.save_checkpoint(params.train_network, str(file), format="safetensors")


def main(args):
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_device(args.device)
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    ms.set_seed(3)
    generator = np.random.default_rng(3)
    inputs = generator.normal(size=(args.total_steps * 16, 8)).astype(np.float32)
    targets = inputs.sum(axis=1, keepdims=True)
    data = ds.NumpySlicesDataset((inputs, targets), shuffle=False, num_shards=get_group_size(), shard_id=get_rank())
    data = data.batch(8)
    network = nn.SequentialCell(nn.Dense(8, 16), nn.GELU(), nn.Dense(16, 1))
    optimizer = nn.AdamWeightDecay(network.trainable_params(), learning_rate=1e-2)
    folder = Path(args.work_dir) / f"rank{get_rank()}"
    if args.load_checkpoint:
        newest = sorted(folder.glob("*.safetensors"))[-1]
        weights = ms.load_checkpoint(str(newest), format="safetensors")
        ms.load_param_into_net(network, weights)
        ms.load_param_into_net(optimizer, weights)
        data.set_init_step(int(weights["global_step"].asnumpy()[0]))
    Model(network, nn.MSELoss(), optimizer).train(
        1, data, callbacks=[Saver(args.save_interval, folder)], dataset_sink_mode=False
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="Ascend")
    parser.add_argument("--total-steps", type=int, default=10)
    parser.add_argument("--save-interval", type=int, default=5)
    parser.add_argument("--work-dir", default="work")
    parser.add_argument("--load-checkpoint", action="store_true")
    main(parser.parse_args())
