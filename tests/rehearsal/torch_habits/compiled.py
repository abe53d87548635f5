"""A training job with torch.compile: of the model, of its call in place, of the update, or of a function."""

import argparse
import os

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--save-every", type=int, default=4)
parser.add_argument("--compiled", choices=["model", "within", "place", "update", "function"], default="model")
args = parser.parse_args()

torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
distributed.init_process_group("gloo")
rank = distributed.get_rank()
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
done = 0
if os.path.exists("latest.pt"):
    saved = torch.load("latest.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    done = saved["step"]
ddp = DDP(torch.compile(model, backend="eager") if args.compiled == "within" else model)
called = torch.compile(ddp, backend="eager") if args.compiled == "model" else ddp
if args.compiled == "place":
    ddp.compile(backend="eager")
update = torch.compile(optimizer.step, backend="eager") if args.compiled == "update" else optimizer.step


def loss_of(inputs: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(called(inputs), inputs.sum(1, keepdim=True))


if args.compiled == "function":
    loss_of = torch.compile(loss_of, backend="eager")
for step in range(done + 1, args.steps + 1):
    torch.manual_seed(1000 * step + rank)
    optimizer.zero_grad()
    loss_of(torch.randn(4, 8)).backward()
    update()
    if step % args.save_every == 0:
        if rank == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, "latest.tmp")
            os.replace("latest.tmp", "latest.pt")
        distributed.barrier()
distributed.destroy_process_group()
