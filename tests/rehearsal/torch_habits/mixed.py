"""A training job with mixed precision: GradScaler leaves out the updates of steps whose gradient is not finite.

The scale begins so high that the first gradients overflow, as in most trainings of this kind. The step of the snapshot
is that of the loop, and Adam counts fewer.
"""

import argparse
import os

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--save-every", type=int, default=4)
parser.add_argument("--fused", action="store_true")
args = parser.parse_args()

torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
distributed.init_process_group("gloo")
rank = distributed.get_rank()
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=args.fused)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=4)
done = 0
if os.path.exists("latest.pt"):
    saved = torch.load("latest.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    scaler.load_state_dict(saved["scaler"])
    done = saved["step"]
ddp = DDP(model)
for step in range(done + 1, args.steps + 1):
    torch.manual_seed(1000 * step + rank)
    inputs = torch.randn(4, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(ddp(inputs).float(), inputs.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if step % args.save_every == 0:
        if rank == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scaler": scaler.state_dict()}
            torch.save({**state, "step": step}, "latest.tmp")
            os.replace("latest.tmp", "latest.pt")
        distributed.barrier()
distributed.destroy_process_group()
