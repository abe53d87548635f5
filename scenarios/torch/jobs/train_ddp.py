"""A training script in PyTorch as a user has one: DDP on gloo, AdamW with a schedule, rank 0 saves, any rank resumes.

It knows nothing of chaos. The run is bit for bit reproducible: one thread, deterministic algorithms, and
``find_unused_parameters``, without which DDP makes its buckets anew after the first step of each process and so sums
gradients in another order. With ``--verify`` each checkpoint has its SHA-256 beside it, and one that has changed since
is passed over: ``torch.load`` compares no checksum.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import time
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

FEATURES, CLASSES, BATCH = 16, 4, 8


class Blobs(Dataset):
    """Points around the centre of their class, drawn from the seed alone."""

    def __init__(self, size: int, seed: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        centres = torch.randn(CLASSES, FEATURES, generator=draw)
        self.labels = torch.randint(CLASSES, (size,), generator=draw)
        self.points = centres[self.labels] + 0.5 * torch.randn(size, FEATURES, generator=draw)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.points[index], self.labels[index]


def newest(directory: Path, verify: bool) -> Path | None:
    """Return the checkpoint of the latest step; with ``verify`` the latest that is as it was saved."""
    found = {
        int(match[1]): path for path in directory.glob("*.pt") if (match := re.fullmatch(r"step-(\d+)", path.stem))
    }
    latest_first = (found[step] for step in sorted(found, reverse=True))
    return next((path for path in latest_first if not verify or is_as_saved(path)), None)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_as_saved(path: Path) -> bool:
    """Return whether a checkpoint has the digest that was written beside it."""
    beside = path.with_suffix(".sha256")
    sound = beside.is_file() and beside.read_text() == digest(path)
    if not sound:
        print(f"{path} is not as it was saved, passed over", flush=True)
    return sound


def main() -> None:
    """Train; go on from the newest checkpoint, if there is one."""
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=12)
    options.add_argument("--save-every", type=int, default=4)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--timeout", type=float, help="seconds after which a collective gives up")
    options.add_argument("--pause", type=float, default=0.0, help="seconds between two steps")
    options.add_argument("--verify", action="store_true", help="pass over checkpoints that have changed")
    options.add_argument("--directory", type=Path, default=Path("checkpoints"))
    args = options.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    timeout = {} if args.timeout is None else {"timeout": timedelta(seconds=args.timeout)}  # PyTorch 2.1 takes no None
    distributed.init_process_group("gloo", **timeout)
    rank, ranks = distributed.get_rank(), distributed.get_world_size()

    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, CLASSES))
    wrapped = DistributedDataParallel(model, find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, args.steps)
    data = Blobs(args.steps * BATCH * ranks, args.seed)
    sampler = DistributedSampler(data, ranks, rank, shuffle=True, seed=args.seed)

    done = 0
    args.directory.mkdir(exist_ok=True)
    if (path := newest(args.directory, args.verify)) is not None:
        saved = torch.load(path, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        schedule.load_state_dict(saved["schedule"])
        done = saved["step"]
        print(f"rank {rank}: going on after step {done} from {path}", flush=True)
    for step, (points, labels) in enumerate(DataLoader(data, BATCH, sampler=sampler), 1):
        if step <= done:
            continue
        torch.manual_seed(args.seed * 100_000 + step * ranks + rank)  # the noise of a step, whoever trains it
        loss = nn.functional.cross_entropy(wrapped(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        print(f"step {step}: loss {loss.item():.6f}", flush=True)
        if step % args.save_every == 0:
            if rank == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
                state["schedule"] = schedule.state_dict()
                unfinished = args.directory / f"step-{step}.tmp"
                torch.save(state, unfinished)
                if args.verify:
                    (args.directory / f"step-{step}.sha256").write_text(digest(unfinished))
                unfinished.replace(args.directory / f"step-{step}.pt")
            distributed.barrier()
        time.sleep(args.pause)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
