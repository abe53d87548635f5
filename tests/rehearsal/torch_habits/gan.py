"""A training job with two networks, as a GAN has them: each has its own optimizer, and the judge is updated first.

The judge's has no moments, unless ``--momentum`` is given.
"""

import argparse
import os

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Maker(nn.Module):
    """Makes samples from noise."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, noise):
        return self.net(noise)


class Judge(nn.Module):
    """Tells samples from made ones."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def forward(self, samples):
        return self.net(samples)


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--save-every", type=int, default=4)
parser.add_argument("--momentum", type=float, default=0.0)
args = parser.parse_args()

torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
distributed.init_process_group("gloo")
rank = distributed.get_rank()
torch.manual_seed(1)
maker, judge = Maker(), Judge()
judging = torch.optim.SGD(judge.parameters(), lr=0.05, momentum=args.momentum)
making = torch.optim.Adam(maker.parameters(), lr=0.01)
done = 0
if os.path.exists("latest.pt"):
    saved = torch.load("latest.pt")
    maker.load_state_dict(saved["maker"])
    judge.load_state_dict(saved["judge"])
    making.load_state_dict(saved["making"])
    judging.load_state_dict(saved["judging"])
    done = saved["step"]
made_by, judged_by = DDP(maker), DDP(judge)
real, fake = torch.ones(4, 1), torch.zeros(4, 1)
for step in range(done + 1, args.steps + 1):
    torch.manual_seed(1000 * step + rank)
    samples, noise = torch.randn(4, 8) + 2, torch.randn(4, 4)
    judging.zero_grad()
    made = made_by(noise)
    verdicts = judged_by(torch.cat([samples, made.detach()]))
    nn.functional.binary_cross_entropy_with_logits(verdicts, torch.cat([real, fake])).backward()
    judging.step()
    making.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(judge(made), real).backward()
    making.step()
    if step % args.save_every == 0:
        if rank == 0:
            state = {"judge": judge.state_dict(), "maker": maker.state_dict(), "step": step}
            state.update(making=making.state_dict(), judging=judging.state_dict())
            torch.save(state, "latest.tmp")
            os.replace("latest.tmp", "latest.pt")
        distributed.barrier()
distributed.destroy_process_group()
