"""Saves in Megatron's layout, as MindSpeed-LLM writes them, by a writer without torch."""

from __future__ import annotations

from pathlib import Path

from tests.kit.checkpoints.torch_save import Called, TorchSave, floats

TRACKER = "latest_checkpointed_iteration.txt"


def write_megatron(root: Path, step: int, *, parts: int = 2) -> Path:
    """Write one save and name it in the tracker. Returns its directory."""
    directory = root / f"iter_{step:07d}"
    for part in range(parts):
        state = {
            "args": Called("argparse.Namespace", (), {"iteration": step, "lr": 0.1}),
            "iteration": step,
            "model": {"weight": floats(1.0 + part, float(step))},
            "optimizer": {
                "optimizer": {"state": {0: {"step": step, "exp_avg": floats(0.5, 0.25)}}, "param_groups": []}
            },
        }
        TorchSave().write(directory / f"mp_rank_{part:02d}" / "model_optim_rng.pt", state)
    (root / TRACKER).write_text(str(step))
    return directory
