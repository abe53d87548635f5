"""Directories that ``torch.distributed.checkpoint`` writes under torchrun, with every way to cut a tensor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.observe.checkpoints.checkpoint import read_checkpoint

pytest.importorskip("torch", reason="torch is not installed here")

pytestmark = pytest.mark.processes

RANKS = 4
SCRIPT = """
import json, sys
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from chaos.agent.digests import array_digest, array_of

dist.init_process_group("gloo")
rank, folder = dist.get_rank(), sys.argv[1]
torch.manual_seed(0)
line, square = init_device_mesh("cpu", (4,)), init_device_mesh("cpu", (2, 2))
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
for layer in (model[0], model[2]):
    fully_shard(layer, mesh=line)
fully_shard(model, mesh=line)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(2, 6)).sum().backward()
    optimizer.step()
weights, slots = get_state_dict(model, optimizer)
cuts = {
    "rows": (line, [Shard(0)]), "columns": (line, [Shard(1)]), "depth": (line, [Shard(2)]),
    "tiles": (square, [Shard(0), Shard(1)]), "twice": (square, [Shard(0), Shard(0)]),
    "hybrid": (square, [Replicate(), Shard(0)]), "whole": (square, [Replicate(), Replicate()]),
}
base = torch.randn(7, 5, 6)
other = {name: distribute_tensor(base.clone(), mesh, placements) for name, (mesh, placements) in cuts.items()}
other["half"] = distribute_tensor(base.to(torch.bfloat16), line, [Shard(0)])
state = {"model": weights, "optim": slots, "other": other, "step": 3, "note": {"name": "x", "lr": 0.5}}
dcp.save(state, checkpoint_id=folder + "/step_3")

def digest(tensor):
    return array_digest(array_of(tensor))

named = dict(weights) | {f"other.{key}": value for key, value in other.items()}
wholes = {name: digest(value.full_tensor()) for name, value in named.items()}
locals_ = {name: digest(value.to_local()) for name, value in named.items()}
with open(f"{folder}/digests_{rank}.json", "w") as file:
    json.dump({"wholes": wholes, "locals": locals_}, file)
dist.destroy_process_group()
"""


def test_a_directory_holds_the_whole_tensors_and_each_ranks_parts(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([*command, str(script), str(tmp_path)], env=environment, check=True, timeout=600)
    checkpoint = read_checkpoint(tmp_path / "step_3" / ".metadata")
    assert checkpoint.crc == "verified"
    assert checkpoint.about_save == {"global_step": 3, "script_step": 3}
    records = [json.loads((tmp_path / f"digests_{rank}.json").read_text()) for rank in range(RANKS)]
    for name, whole in records[0]["wholes"].items():
        assert checkpoint.tensors[name].digest == whole, name
    compared = 0
    for name, shards in checkpoint.shards.items():
        for rank, digest in shards.items():
            if name in records[rank]["locals"]:
                assert digest == records[rank]["locals"][name], (name, rank)
                compared += 1
    assert compared >= 4 * RANKS
    assert "optimizer.exp_avg.3" in checkpoint.tensors
    assert all(len(checkpoint.shards[f"other.{name}"]) == RANKS for name in ("columns", "tiles", "depth"))
    assert "other.whole" not in checkpoint.shards
