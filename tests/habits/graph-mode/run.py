"""A compiled training step in graph mode, from a configuration class; saves with its own function."""

import sys
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn
from mindspore.communication import get_rank, init
from mindspore.nn import TrainOneStepCell, WithLossCell


class Config:
    batch_size = 8
    max_steps = 9
    checkpoint_every = 3
    lr = 0.05
    checkpoints = Path("checkpoints")


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(10, 20)
        self.fc2 = nn.Dense(20, 4)
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.fc2(self.relu(self.fc1(x)))


def batch(step, rank, config):
    rng = np.random.default_rng([step, rank])
    x = rng.normal(size=(config.batch_size, 10)).astype(np.float32)
    return Tensor(x), Tensor(x[:, :4].argmax(axis=1).astype(np.int32))


def main(restore):
    config = Config()
    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_device("CPU")
    init()
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL, gradients_mean=True)
    ms.set_seed(21)
    rank = get_rank()
    net = Net()
    optimizer = nn.Momentum(net.trainable_params(), config.lr, 0.9)
    train_net = TrainOneStepCell(WithLossCell(net, nn.CrossEntropyLoss()), optimizer).set_train()
    done = 0
    if restore:
        done = max(int(path.stem.split("_")[-1]) for path in config.checkpoints.glob(f"r{rank}_*.ckpt"))
        ms.load_checkpoint(str(config.checkpoints / f"r{rank}_{done}.ckpt"), train_net)
    for step in range(done, config.max_steps):
        loss = train_net(*batch(step, rank, config))
        print(f"step {step + 1} loss {float(loss.asnumpy()):.5f}", flush=True)
        if (step + 1) % config.checkpoint_every == 0:
            config.checkpoints.mkdir(exist_ok=True)
            ms.save_checkpoint(train_net, str(config.checkpoints / f"r{rank}_{step + 1}.ckpt"))


if __name__ == "__main__":
    main("restore" in sys.argv)
