"""A training job as many people write it: positional arguments, epochs, one snapshot, no seed, a class that trains.

It is like public examples of DDP on a CPU, and knows nothing of chaos. The snapshot has the number of the epoch and no
step, and plain SGD counts none.
"""

import argparse
import logging
import os

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

logging.basicConfig(level=logging.INFO)
log = logging.getLogger("fit")


class Waves(Dataset):
    """Noisy sums of random inputs."""

    def __init__(self, count):
        self.count = count
        self.inputs = torch.randn(count, 12)
        self.targets = self.inputs @ torch.randn(12, 1) + 0.1 * torch.randn(count, 1)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.inputs[index], self.targets[index]


class Fit:
    """The model, its data, and the snapshot that all ranks go on from."""

    def __init__(self, model, data, rate, save_every, snapshot):
        self.rank = int(os.environ["RANK"])
        self.data = data
        self.save_every = save_every
        self.snapshot = snapshot
        self.first_epoch = 0
        if os.path.exists(snapshot):
            saved = torch.load(snapshot, map_location="cpu")
            model.load_state_dict(saved["MODEL"])
            self.first_epoch = saved["EPOCHS"]
            log.info("rank %d goes on with epoch %d", self.rank, self.first_epoch)
        self.model = DDP(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate)

    def batch(self, inputs, targets):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(inputs), targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def epoch(self, epoch):
        self.data.sampler.set_epoch(epoch)
        losses = [self.batch(inputs, targets) for inputs, targets in self.data]
        log.info("rank %d, epoch %d: loss %.4f", self.rank, epoch, sum(losses) / len(losses))

    def save(self, epochs):
        if self.rank == 0:
            unfinished = self.snapshot + ".part"
            torch.save({"MODEL": self.model.module.state_dict(), "EPOCHS": epochs}, unfinished)
            os.rename(unfinished, self.snapshot)
        distributed.barrier()

    def run(self, epochs):
        for epoch in range(self.first_epoch, epochs):
            self.epoch(epoch)
            if (epoch + 1) % self.save_every == 0:
                self.save(epoch + 1)


def main():
    parser = argparse.ArgumentParser(description="Fit a small network to noisy sums.")
    parser.add_argument("epochs", type=int, help="epochs to train in all")
    parser.add_argument("save_every", type=int, help="epochs between two snapshots")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--rate", type=float, default=0.05)
    args = parser.parse_args()
    distributed.init_process_group("gloo")
    waves = Waves(args.samples)
    data = DataLoader(waves, batch_size=args.batch_size, sampler=DistributedSampler(waves))
    network = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 1))
    Fit(network, data, args.rate, args.save_every, "snapshot.pt").run(args.epochs)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
