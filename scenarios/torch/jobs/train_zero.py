"""A training script in PyTorch as a user has one: DDP with ZeRO-1 on gloo; rank 0 saves the whole state of all ranks.

It knows nothing of chaos. Every rank keeps the moments of some weights only. The run is bit for bit reproducible: one
thread, deterministic algorithms, and ``find_unused_parameters``, as in ``train_ddp.py``.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import torch
from torch import distributed, nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

FEATURES, CLASSES, BATCH = 16, 4, 8


def newest(directory: Path) -> Path | None:
    """Return the checkpoint of the latest step."""
    found = {
        int(match[1]): path for path in directory.glob("*.pt") if (match := re.fullmatch(r"step-(\d+)", path.stem))
    }
    return found[max(found)] if found else None


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points around the centre of their class, with their classes."""
    centres = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(0))
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (BATCH,), generator=draw)
    return centres[labels] + 0.5 * torch.randn(BATCH, FEATURES, generator=draw), labels


def main() -> None:
    """Train; go on from the newest checkpoint, if there is one."""
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=12)
    options.add_argument("--save-every", type=int, default=4)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--pause", type=float, default=0.0, help="seconds between two steps")
    options.add_argument("--directory", type=Path, default=Path("checkpoints"))
    args = options.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    distributed.init_process_group("gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()

    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, CLASSES))
    wrapped = DistributedDataParallel(model, find_unused_parameters=True)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-2)

    done = 0
    args.directory.mkdir(exist_ok=True)
    if (path := newest(args.directory)) is not None:
        saved = torch.load(path, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        done = saved["step"]
        print(f"rank {rank}: going on after step {done} from {path}", flush=True)
    for step in range(done + 1, args.steps + 1):
        points, labels = batch(args.seed * 100_000 + step * ranks + rank)
        torch.manual_seed(args.seed * 100_000 + step * ranks + rank)  # the noise of a step, whoever trains it
        loss = nn.functional.cross_entropy(wrapped(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.6f}", flush=True)
        if step % args.save_every == 0:
            optimizer.consolidate_state_dict(to=0)
            if rank == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                unfinished = args.directory / f"step-{step}.tmp"
                torch.save(state, unfinished)
                unfinished.replace(args.directory / f"step-{step}.pt")
            distributed.barrier()
        time.sleep(args.pause)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
