"""The shards of a PyTorch script become cluster.parallel, or a comment where the text leaves them open."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from chaos.cli.main import entry
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Scenario
from tests.kit.shipped import SHIPPED

TORCHRUN = "torchrun --nproc-per-node 4 --max-restarts 3"
HEAD = """
import argparse
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
STEPS = 12
options = argparse.ArgumentParser()
options.add_argument("--mode")
options.add_argument("--copies", type=int, default=1)
args = options.parse_args()
"""
LOOP = """
optimizer = torch.optim.AdamW(model.parameters())
for step in range(1, STEPS + 1):
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        dcp.async_save({}, checkpoint_id=f"saved/step-{step}")
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    shutil.copytree(SHIPPED / "torch" / "jobs", tmp_path, dirs_exist_ok=True)
    return tmp_path


def written(job: Path, launch: str) -> tuple[Scenario, str]:
    assert entry(["init", str(job), "--launch", launch]) == 0
    (file,) = job.glob("*.yaml")
    return load_scenario(file).cells[0].scenario, file.read_text()


@pytest.mark.parametrize(
    ("words", "shipped"),
    [
        ("train_fsdp.py", "torch-fsdp-kill-rank"),
        ("train_fsdp.py --replicas=2", "torch-hsdp-kill-rank"),
        ("train_zero.py", "torch-zero-kill-rank"),
        ("train_ddp.py", "torch-kill-rank"),
    ],
)
def test_shipped_scripts_have_the_shards_of_the_shipped_scenarios(job: Path, words: str, shipped: str) -> None:
    scenario, text = written(job, f"{TORCHRUN} {words} --steps=12 --save-every=4")
    expected = load_scenario(SHIPPED / "torch" / f"{shipped}.yaml").cells[0].scenario
    assert scenario.cluster.parallel == expected.cluster.parallel
    assert (scenario.job.checkpoint_interval, scenario.job.protection) == (4, ("ELASTIC",))
    assert "CHECK" not in text


def sharded(job: Path, lines: str, arguments: str = "") -> tuple[Scenario, str]:
    (job / "own.py").write_text(HEAD + lines + LOOP)
    return written(job, f"torchrun --nproc-per-node 4 own.py {arguments}")


@pytest.mark.parametrize(
    ("lines", "shard", "copies"),
    [
        ("model = FSDP(net)", "full", None),
        ("model = FSDP(net, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)", "full", None),
        ("mesh = init_device_mesh('cpu', (2, 2))\nfully_shard(net, mesh=mesh)", "full", 2),
        ("fully_shard(net, mesh=init_device_mesh('cpu', (ranks // 2, 2)))", "full", 2),
        ("fully_shard(net, mesh=init_device_mesh('cpu', (ranks,)))", "full", None),
        ("optimizer = ZeroRedundancyOptimizer(p, torch.optim.AdamW)", "optimizer", None),
        ("if args.copies == 1:\n    fully_shard(net)", "full", None),
    ],
)
def test_a_line_that_shards_is_written(job: Path, lines: str, shard: str, copies: int | None) -> None:
    scenario, text = sharded(job, lines)
    parallel = scenario.cluster.parallel
    assert parallel is not None
    assert (parallel.data_parallel, parallel.shard, parallel.copies) == (4, shard, copies)
    assert "CHECK" not in text and scenario.job.checkpoint_interval == 4


@pytest.mark.parametrize(
    "lines",
    [
        "fully_shard(net, mesh=init_device_mesh('cpu', (copies, ranks // copies)))",
        "fully_shard(net, mesh=init_device_mesh('cpu', (3, 2)))",
        "fully_shard(net, mesh=mesh['dp'])",
        "fully_shard(net, **how)",
        "model = FSDP(net, sharding_strategy=ShardingStrategy.HYBRID_SHARD)",
        "model = FSDP(net, sharding_strategy=how)",
        "model = FSDP(net, group)",
    ],
)
def test_copies_that_the_text_leaves_open_are_to_be_checked(job: Path, lines: str) -> None:
    scenario, text = sharded(job, lines)
    parallel = scenario.cluster.parallel
    assert parallel is not None and (parallel.shard, parallel.copies) == ("full", None)
    assert "# CHECK: own.py:" in text and "say copies" in text


@pytest.mark.parametrize(
    "lines",
    [
        "if args.mode == mode:\n    fully_shard(net)",
        "wrap(net, fully_shard)",
        "fully_shard(net)\noptimizer = ZeroRedundancyOptimizer(p, torch.optim.AdamW)",
    ],
)
def test_shards_that_the_text_leaves_open_are_a_comment(
    job: Path, lines: str, capfd: pytest.CaptureFixture[str]
) -> None:
    scenario, text = sharded(job, lines)
    assert scenario.cluster.parallel is None
    assert "  # CHECK parallel: {data_parallel: 4, shard: …}" in text
    assert "cluster.parallel.shard (left out)" in capfd.readouterr().out


@pytest.mark.parametrize(
    "lines",
    [
        "if args.copies == 2:\n    fully_shard(net)",
        "model = FSDP(net, sharding_strategy=ShardingStrategy.NO_SHARD)",
        "own.fully_shard(net)",
    ],
)
def test_nothing_is_sharded(job: Path, lines: str) -> None:
    scenario, text = sharded(job, lines)
    assert scenario.cluster.parallel is None and "CHECK" not in text


@pytest.mark.parametrize("nodes", ["--nnodes 2", "--nnodes=2 --rdzv-backend=c10d --rdzv-endpoint=host:1234"])
def test_nodes_of_a_job_that_torchrun_restarts_are_planned(job: Path, nodes: str) -> None:
    scenario, _ = written(job, f"torchrun {nodes} --nproc-per-node 2 --max-restarts 3 train_ddp.py --save-every=4")
    cluster = scenario.cluster
    assert (cluster.nodes, cluster.ranks, cluster.network, scenario.job.command) == (2, 4, True, None)
    assert (scenario.job.protection, scenario.job.restart_limit) == (("ELASTIC",), 3)


def test_nodes_of_a_shell_script_are_planned(job: Path) -> None:
    (job / "run.sh").write_text("torchrun --nnodes 2 --nproc-per-node 2 --max-restarts 3 train_ddp.py\n")
    assert entry(["init", str(job)]) == 0
    (file,) = job.glob("*.yaml")
    cluster = load_scenario(file).cells[0].scenario.cluster
    assert (cluster.nodes, cluster.ranks, cluster.network) == (2, 4, True)


def own_python(directory: Path) -> Path:
    """Make an interpreter that says that it has PyTorch."""
    python = directory / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("""#!/bin/sh\necho '{"python": "3.11.4", "torch": "2.5.1"}'\n""")
    python.chmod(0o755)
    (python.parent / "torchrun").write_text(f"#!{python}\n")
    return python


@pytest.mark.parametrize("words", ["python -m torch.distributed.run", "torchrun"])
def test_an_interpreter_of_the_users_own_is_written(job: Path, words: str) -> None:
    python = own_python(job)
    scenario, _ = written(job, f"{python.parent}/{words} --nproc-per-node 4 train_ddp.py")
    assert (scenario.job.python, scenario.job.command) == (str(python), None)


def test_the_harness_own_interpreter_is_not_written(job: Path) -> None:
    scenario, text = written(job, f"{sys.executable} -m torch.distributed.run --nproc-per-node 4 train_ddp.py")
    assert scenario.job.python is None and "python:" not in text


def test_an_interpreter_that_is_not_here_is_a_comment(job: Path) -> None:
    scenario, text = written(job, "/nowhere/bin/torchrun --nproc-per-node 4 train_ddp.py")
    assert scenario.job.python is None
    assert "  # CHECK python: /nowhere/bin/python  # --launch names it, and it is not on this machine" in text


def test_an_interpreter_that_a_file_names_is_a_comment_and_not_executed(job: Path) -> None:
    python = own_python(job)
    python.write_text(f"#!/bin/sh\ntouch {job}/executed\n")
    (job / "run.sh").write_text(f"{os.path.relpath(python, job)} -m torch.distributed.run train_ddp.py\n")
    assert entry(["init", str(job)]) == 0
    (file,) = job.glob("*.yaml")
    assert f"  # CHECK python: {python}" in file.read_text()
    assert not (job / "executed").exists()
