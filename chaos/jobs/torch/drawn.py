"""Jobs of random scenarios: the scripts that chaos comes with, each with another way to spread the state over ranks."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from chaos.jobs.shipped import shipped_scenarios

_SPREAD: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("train_ddp.py", {}, ()),
    ("train_zero.py", {"shard": "optimizer"}, ()),
    ("train_fsdp.py", {"shard": "full"}, ()),
    ("train_fsdp.py", {"shard": "full", "copies": 2}, ("--replicas=2",)),
)
"""Script, keys of ``cluster.parallel``, arguments: DDP, ZeRO-1, FSDP2, HSDP."""


def scripts() -> tuple[Path, ...]:
    """Return the scripts; none where chaos has come without its scenarios."""
    scenarios = shipped_scenarios()
    names = sorted({script for script, *_ in _SPREAD})
    return () if scenarios is None else tuple(scenarios / "torch" / "jobs" / name for name in names)


def draw_job(draw: Random, cluster: dict[str, Any], job: dict[str, Any]) -> None:
    """Complete a drawn job by a script, which lies beside the scenario, and its arguments."""
    script, spread, arguments = draw.choice(_SPREAD if cluster["ranks"] == 4 else _SPREAD[:3])
    cluster.pop("nodes", None)
    job.pop("steps_per_epoch", None)
    job["checkpoint_interval"] = draw.choice((2, 3, 4))
    job["script"] = script
    saving = f"--save-every={job['checkpoint_interval']}"
    job["arguments"] = [f"--steps={job['steps']}", saving, f"--seed={job['seed']}", *arguments]
    cluster["parallel"] = {"data_parallel": cluster["ranks"], **spread}
