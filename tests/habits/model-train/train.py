"""Model.train with callbacks; every rank keeps its own checkpoints and goes on from its newest file by name."""

import argparse
import os

import mindspore as ms
import mindspore.dataset as ds
import mindspore.nn as nn
import numpy as np
from mindspore.communication.management import get_group_size, get_rank, init
from mindspore.train import CheckpointConfig, LossMonitor, Model, ModelCheckpoint, TimeMonitor


def create_dataset(rank, size, batch_size, samples=96):
    rng = np.random.RandomState(11)
    x = rng.randn(samples, 20).astype(np.float32)
    y = (x[:, :10].sum(axis=1) > 0).astype(np.int32)
    dataset = ds.NumpySlicesDataset({"x": x, "y": y}, shuffle=False, num_shards=size, shard_id=rank)
    return dataset.batch(batch_size, drop_remainder=True)


def latest_checkpoint(folder):
    names = [name for name in os.listdir(folder) if name.endswith(".ckpt")]
    names.sort(key=lambda name: tuple(int(part) for part in name[:-5].split("-")[1].split("_")))
    return os.path.join(folder, names[-1])


def parse_args():
    parser = argparse.ArgumentParser(description="train a classifier")
    parser.add_argument("--device_target", type=str, default="CPU", choices=["Ascend", "CPU"])
    parser.add_argument("--epoch_size", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--save_checkpoint_steps", type=int, default=3)
    parser.add_argument("--resume", type=lambda text: text.lower() == "true", default=False)
    return parser.parse_args()


def main():
    args = parse_args()
    ms.set_seed(42)
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target=args.device_target)
    init()
    rank_id, rank_size = get_rank(), get_group_size()
    ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=True)

    train_data = create_dataset(rank_id, rank_size, args.batch_size)
    steps_per_epoch = train_data.get_dataset_size()
    network = nn.SequentialCell(nn.Dense(20, 40), nn.Tanh(), nn.Dense(40, 2))
    opt = nn.Adam(network.trainable_params(), learning_rate=0.01)
    ckpt_dir = os.path.join("checkpoint", f"rank_{rank_id}")
    first_epoch = 0
    if args.resume:
        params = ms.load_checkpoint(latest_checkpoint(ckpt_dir))
        ms.load_param_into_net(network, params)
        ms.load_param_into_net(opt, params)
        done = int(params["global_step"].asnumpy().reshape(-1)[0])
        first_epoch = done // steps_per_epoch
        train_data.set_init_step(done)

    config = CheckpointConfig(save_checkpoint_steps=args.save_checkpoint_steps, keep_checkpoint_max=5)
    callbacks = [TimeMonitor(), LossMonitor(), ModelCheckpoint(prefix="net", directory=ckpt_dir, config=config)]
    model = Model(network, loss_fn=nn.CrossEntropyLoss(), optimizer=opt)
    model.train(args.epoch_size, train_data, callbacks=callbacks, dataset_sink_mode=False, initial_epoch=first_epoch)


if __name__ == "__main__":
    main()
