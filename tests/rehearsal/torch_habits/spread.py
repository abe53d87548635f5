"""A training job whose checkpoint is a directory of several files, as well-known trainers write it.

Rank 0 saves the weights with safetensors, and the optimizer and its schedule with ``torch.save``; every rank adds the
state of its own generators, since dropout draws from them. The job ends well on SIGTERM. It knows nothing of chaos.
"""

import argparse
import json
import os
import signal

import torch
from safetensors.torch import load_file, save_file
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel as DDP

asked_to_end = False


def note_end(signum, frame):
    global asked_to_end
    asked_to_end = True


def newest(output):
    directories = (
        [name for name in os.listdir(output) if name.startswith("checkpoint-")] if os.path.isdir(output) else []
    )
    complete = [name for name in directories if os.path.exists(os.path.join(output, name, "state.json"))]
    return os.path.join(output, max(complete, key=lambda name: int(name.split("-")[1]))) if complete else None


def save(output, step, rank, model, optimizer, schedule):
    directory = os.path.join(output, f"checkpoint-{step}")
    os.makedirs(directory, exist_ok=True)
    torch.save({"cpu": torch.get_rng_state()}, os.path.join(directory, f"rng_state_{rank}.pth"))
    distributed.barrier()
    if rank == 0:
        save_file(model.state_dict(), os.path.join(directory, "model.safetensors"), metadata={"format": "pt"})
        torch.save(optimizer.state_dict(), os.path.join(directory, "optimizer.pt"))
        torch.save(schedule.state_dict(), os.path.join(directory, "scheduler.pt"))
        with open(os.path.join(directory, "state.json"), "w") as file:
            json.dump({"global_step": step}, file)


def load(directory, rank, model, optimizer, schedule):
    model.load_state_dict(load_file(os.path.join(directory, "model.safetensors")))
    optimizer.load_state_dict(torch.load(os.path.join(directory, "optimizer.pt")))
    schedule.load_state_dict(torch.load(os.path.join(directory, "scheduler.pt")))
    torch.set_rng_state(torch.load(os.path.join(directory, f"rng_state_{rank}.pth"))["cpu"])
    with open(os.path.join(directory, "state.json")) as file:
        return json.load(file)["global_step"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--save-steps", type=int, default=4)
    parser.add_argument("--output", default="out")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, note_end)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    torch.manual_seed(7 + rank)
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.Linear(16, 1))
    wrapped = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=args.steps)
    directory = newest(args.output)
    first = 0 if directory is None else load(directory, rank, model, optimizer, schedule)
    for step in range(first + 1, args.steps + 1):
        if asked_to_end:
            break
        inputs = torch.randn(4, 8)
        optimizer.zero_grad()
        wrapped(inputs).pow(2).mean().backward()
        optimizer.step()
        schedule.step()
        if step % args.save_steps == 0:
            save(args.output, step, rank, model, optimizer, schedule)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
