"""A training script in PyTorch as a user has one: FSDP2 on gloo, AdamW, every rank saves its shards by DCP.

It knows nothing of chaos. Each parameter is cut over all ranks or, with ``--replicas 2``, over the ranks of one of two
replica groups (HSDP). The run is bit for bit reproducible: one thread and deterministic algorithms. With ``--verify``
each checkpoint has the SHA-256 of its directory beside it, and rank 0 passes over those that have changed since:
``checkpoint.load`` compares no checksum.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import time
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

FEATURES, CLASSES, BATCH = 16, 4, 8


def newest(directory: Path, verify: bool) -> Path | None:
    """Return the checkpoint of the latest step; with ``verify`` the latest that is as it was saved."""
    found = {int(match[1]): path for path in directory.iterdir() if (match := re.fullmatch(r"step-(\d+)", path.name))}
    latest_first = (found[step] for step in sorted(found, reverse=True))
    return next((path for path in latest_first if not verify or is_as_saved(path)), None)


def digest(directory: Path) -> str:
    """Return the SHA-256 of the files of a checkpoint, with their names."""
    whole = hashlib.sha256()
    for path in sorted(directory.iterdir()):
        whole.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def is_as_saved(path: Path) -> bool:
    """Return whether a checkpoint has the digest that was written beside it."""
    beside = path.with_suffix(".sha256")
    sound = beside.is_file() and beside.read_text() == digest(path)
    if not sound:
        print(f"{path} is not as it was saved, passed over", flush=True)
    return sound


def chosen(directory: Path, verify: bool) -> Path | None:
    """Return the checkpoint to go on from: rank 0 chooses, so that all ranks take the same."""
    choice = [newest(directory, verify) if distributed.get_rank() == 0 else None]
    distributed.broadcast_object_list(choice)
    return choice[0]


def batch(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points around the centre of their class, with their classes."""
    centres = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(0))
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (BATCH,), generator=draw)
    return centres[labels] + 0.5 * torch.randn(BATCH, FEATURES, generator=draw), labels


def state_of(model: nn.Module, optimizer: torch.optim.Optimizer, schedule: Any, step: int) -> dict[str, Any]:
    """Return what a checkpoint holds; of parameters and moments this rank's shards."""
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments, "schedule": schedule.state_dict(), "step": step}


def main() -> None:
    """Train; go on from the newest checkpoint, if there is one."""
    options = argparse.ArgumentParser()
    options.add_argument("--steps", type=int, default=12)
    options.add_argument("--save-every", type=int, default=4)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--replicas", type=int, default=1, help="groups of ranks that each hold all parameters")
    options.add_argument("--pause", type=float, default=0.0, help="seconds between two steps")
    options.add_argument("--verify", action="store_true", help="pass over checkpoints that have changed")
    options.add_argument("--directory", type=Path, default=Path("checkpoints"))
    args = options.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    distributed.init_process_group("gloo")
    rank, ranks = distributed.get_rank(), distributed.get_world_size()

    if args.replicas == 1:
        mesh = init_device_mesh("cpu", (ranks,))
    else:
        sizes = (args.replicas, ranks // args.replicas)
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("replicas", "shards"))
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, CLASSES))
    for layer in (model[0], model[3], model):
        fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, args.steps)

    done = 0
    args.directory.mkdir(exist_ok=True)
    if (path := chosen(args.directory, args.verify)) is not None:
        state = state_of(model, optimizer, schedule, 0)
        checkpoint.load(state, checkpoint_id=path)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        done = state["step"]
        print(f"rank {rank}: going on after step {done} from {path}", flush=True)
    for step in range(done + 1, args.steps + 1):
        points, labels = batch(args.seed * 100_000 + step * ranks + rank)
        torch.manual_seed(args.seed * 100_000 + step * ranks + rank)  # the noise of a step, whoever trains it
        loss = nn.functional.cross_entropy(model(points), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        print(f"step {step}: loss {loss.item():.6f}", flush=True)
        if step % args.save_every == 0:
            unfinished = args.directory / f"step-{step}.tmp"
            checkpoint.save(state_of(model, optimizer, schedule, step), checkpoint_id=unfinished)
            if rank == 0:
                if args.verify:
                    (args.directory / f"step-{step}.sha256").write_text(digest(unfinished))
                path = args.directory / f"step-{step}"
                if path.exists():  # passed over when this process began, and its step is trained again
                    shutil.rmtree(path)
                unfinished.replace(path)
            distributed.barrier()
        time.sleep(args.pause)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
