"""The script of the good runs on PyTorch: DDP on gloo, whose every rank saves its own state and goes on from it.

What a checkpoint has to restore is all there: weights, moments and step counters of AdamW, a schedule of the learning
rate, the random state of the dropout, and the position in the data. ``find_unused_parameters`` keeps DDP's buckets as
they are, so that a resumed job sums its gradients in the same order.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

FEATURES, CLASSES, BATCH = 8, 4, 4


def data(size: int) -> TensorDataset:
    """Return points with labels, the same in every rank."""
    draw = torch.Generator().manual_seed(7)
    return TensorDataset(torch.randn(size, FEATURES, generator=draw), torch.randint(CLASSES, (size,), generator=draw))


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def is_as_saved(path: Path) -> bool:
    """Return whether a checkpoint has the digest that was written beside it."""
    return path.with_suffix(".sha256").read_text() == digest(path)


def common(paths: list[Path]) -> list[Path]:
    """Return the paths of the steps for which every rank has one."""
    every: list[list[str]] = [[] for _ in range(distributed.get_world_size())]
    distributed.all_gather_object(every, [path.name for path in paths])
    return [path for path in paths if all(path.name in names for names in every)]


def main() -> None:
    """Train; go on from the rank's own newest checkpoint, if there is one."""
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, required=True)
    options.add_argument("--save-every", type=int, required=True)
    options.add_argument("--verify", action="store_true", help="pass over checkpoints that have changed")
    args = options.parse_args()
    distributed.init_process_group("gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, CLASSES))
    wrapped = DistributedDataParallel(model, find_unused_parameters=True)
    torch.manual_seed(100 + rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, args.steps)
    samples = data(args.steps * BATCH * ranks)
    # The iterator draws from the random state when it is made: before the state is restored.
    batches = iter(DataLoader(samples, BATCH, sampler=DistributedSampler(samples, ranks, rank, seed=3)))

    done, directory = 0, Path("checkpoints", f"rank_{rank}")
    directory.mkdir(parents=True, exist_ok=True)
    saved = sorted(directory.glob("step-*.pt"), key=lambda path: int(path.stem.removeprefix("step-")))
    if args.verify:
        saved = common([path for path in saved if is_as_saved(path)])
    if saved:
        state = torch.load(saved[-1], weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["random"])
        done = state["step"]
    for step, (points, labels) in enumerate(batches, 1):
        if step <= done:
            continue
        loss = nn.functional.cross_entropy(wrapped(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        print(f"step {step}: loss {loss.item():.6f}", flush=True)
        if step % args.save_every == 0:
            unfinished = directory / f"step-{step}.tmp"
            state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "schedule": schedule.state_dict(), "random": torch.get_rng_state()}, unfinished)
            if args.verify:
                unfinished.with_suffix(".sha256").write_text(digest(unfinished))
            unfinished.replace(directory / f"step-{step}.pt")
            distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
