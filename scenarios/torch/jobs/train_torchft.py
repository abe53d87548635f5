"""A training script in PyTorch as a user of torchft has one: a replica group a process, DDP over all groups on gloo.

It knows nothing of chaos. The data of a step depend on the seed, the step and the group alone. A group that dies is
started again by whoever runs the groups, and torchft gives it the state of another group: nothing is saved to a file.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from datetime import timedelta

import torch
from torch import distributed, nn
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

FEATURES, CLASSES, BATCH = 16, 4, 8


def batch(seed: int, step: int, group: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the points and labels that a group trains in a step."""
    centres = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(seed))
    draw = torch.Generator().manual_seed(seed * 1_000_000 + step * 1_000 + group)
    labels = torch.randint(CLASSES, (BATCH,), generator=draw)
    return centres[labels] + 0.5 * torch.randn(BATCH, FEATURES, generator=draw), labels


def main() -> None:
    """Train; a group that joins later gets its state from a group that trains."""
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=24)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--min-groups", type=int, default=2, help="fewest groups that make an update")
    options.add_argument("--pause", type=float, default=0.0, help="seconds between two steps")
    options.add_argument("--pause-below", type=float, default=0.0, help="the same while a group is missing")
    args = options.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    group, groups = int(os.environ["REPLICA_GROUP_ID"]), int(os.environ["NUM_REPLICA_GROUPS"])
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    distributed.init_process_group("gloo")  # makes the group's own store, which the manager needs

    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES))
    inner = torch.optim.AdamW(model.parameters(), lr=1e-2)
    parts = {"model": model, "optimizer": inner}

    def load(state: dict) -> None:
        for name, part in parts.items():
            part.load_state_dict(state[name])

    timeout = timedelta(seconds=int(os.environ.get("TORCHFT_TIMEOUT_SEC", "60")))
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timeout),
        load_state_dict=load,
        state_dict=lambda: {name: part.state_dict() for name, part in parts.items()},
        min_replica_size=args.min_groups,
        timeout=timeout,
        init_sync=False,  # the seed makes all groups equal
        replica_id=f"train_torchft_{group}",
        hostname="127.0.0.1",
    )
    wrapped = DistributedDataParallel(manager, model)
    optimizer = Optimizer(manager, inner)
    while manager.current_step() < args.steps:
        optimizer.zero_grad()  # asks the lighthouse for the groups of this step
        together = manager.num_participants()
        if manager.current_step() == 0 and together < groups:
            continue  # the training begins when every group is there
        step = manager.current_step() + 1
        points, labels = batch(args.seed, step, group)
        loss = nn.functional.cross_entropy(wrapped(points), labels)
        loss.backward()
        optimizer.step()
        if manager.current_step() == step:
            print(f"step {step}: loss {loss.item():.6f}, {together} groups", flush=True)
        time.sleep(args.pause if together == groups else args.pause_below)
    manager.shutdown()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
