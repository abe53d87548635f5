"""The script of the good runs on PyTorch whose state is spread over ranks: FSDP2 and HSDP with DCP, or ZeRO-1.

All ranks save into one directory of each step and go on from it; with ZeRO-1 rank 0 saves a file for all.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

FEATURES, CLASSES, BATCH = 8, 4, 4


def saved_steps(directory: Path) -> list[int]:
    """Return the steps of the finished checkpoints, in order."""
    names = [path.name.removesuffix(".pt") for path in directory.glob("step-*")]
    return sorted(int(name.removeprefix("step-")) for name in names if not name.endswith(".tmp"))


class Sharded:
    """A model whose parameters are cut over all ranks, or over the ranks of each copy (FSDP2, HSDP)."""

    def __init__(self, model: nn.Sequential, copies: int) -> None:
        shards = distributed.get_world_size() // copies
        names = ("copies", "shards")
        mesh = init_device_mesh("cpu", (copies, shards), mesh_dim_names=names) if copies > 1 else None
        for layer in (model[0], model[2], model):
            fully_shard(layer, **({} if mesh is None else {"mesh": mesh}))
        self.model = self.trained = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def save(self, directory: Path, step: int) -> None:
        """Save each rank's shards; the directory gets its name when it is complete."""
        checkpoint.save(self._state(step), checkpoint_id=directory / f"step-{step}.tmp")
        if distributed.get_rank() == 0:
            (directory / f"step-{step}.tmp").replace(directory / f"step-{step}")

    def load(self, directory: Path, step: int) -> None:
        """Load each rank's shards."""
        state = self._state(0)
        checkpoint.load(state, checkpoint_id=directory / f"step-{step}")
        parts = {"model_state_dict": state["model"], "optim_state_dict": state["optimizer"]}
        set_state_dict(self.model, self.optimizer, **parts)

    def _state(self, step: int) -> dict[str, Any]:
        weights, moments = get_state_dict(self.model, self.optimizer)
        return {"model": weights, "optimizer": moments, "step": step}


class Zero:
    """A model that all ranks hold, with an optimizer whose state is spread over them (ZeRO-1)."""

    def __init__(self, model: nn.Sequential) -> None:
        self.model, self.trained = model, DistributedDataParallel(model, find_unused_parameters=True)
        self.optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-2)

    def save(self, directory: Path, step: int) -> None:
        """Save the whole state on rank 0."""
        self.optimizer.consolidate_state_dict(to=0)
        if distributed.get_rank() == 0:
            state = {"step": step, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
            torch.save(state, directory / f"step-{step}.tmp")
            (directory / f"step-{step}.tmp").replace(directory / f"step-{step}.pt")

    def load(self, directory: Path, step: int) -> None:
        """Load the whole state; the optimizer keeps this rank's part."""
        state = torch.load(directory / f"step-{step}.pt", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


def main() -> None:
    """Train; go on from the newest checkpoint, if there is one."""
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, required=True)
    options.add_argument("--save-every", type=int, required=True)
    options.add_argument("--copies", type=int, default=1)
    options.add_argument("--zero", action="store_true")
    args = options.parse_args()
    distributed.init_process_group("gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, CLASSES))
    training = Zero(model) if args.zero else Sharded(model, args.copies)
    directory, done = Path("checkpoints"), 0
    directory.mkdir(exist_ok=True)
    distributed.barrier()
    if steps := saved_steps(directory):
        done = steps[-1]
        training.load(directory, done)
    for step in range(done + 1, args.steps + 1):
        draw = torch.Generator().manual_seed(step * ranks + rank)
        points = torch.randn(BATCH, FEATURES, generator=draw)
        labels = torch.randint(CLASSES, (BATCH,), generator=draw)
        loss = nn.functional.cross_entropy(training.trained(points), labels)
        training.optimizer.zero_grad()
        loss.backward()
        training.optimizer.step()
        print(f"step {step}: loss {loss.item():.6f}", flush=True)
        if step % args.save_every == 0:
            training.save(directory, step)
            distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
