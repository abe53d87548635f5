"""Checkpoints in Megatron's layout: ``iter_0000012/mp_rank_00/model_optim_rng.pt``, and a tracker file beside them.

All ranks hold the same state, so one of them writes it. An end-of-life checkpoint has ``_tmp`` behind the name of its
directory until it is complete.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from chaos.agent.training import Training
from chaos.rehearsal.torch.model import State

TRACKER = "latest_checkpointed_iteration.txt"
_FILE = Path("mp_rank_00") / "model_optim_rng.pt"


class Checkpoints:
    """The checkpoints in a directory. ``save_seconds`` is how much longer a last one takes, as if it were larger."""

    def __init__(self, directory: Path, state: State, training: Training, save_seconds: float) -> None:
        self._directory = directory
        self._state = state
        self._training = training
        self._save_seconds = save_seconds

    def save_end_of_life(self, iteration: int) -> None:
        """Save the state of the last iteration under the temporary name."""
        import torch

        path = self._directory / f"{_name(iteration)}_tmp" / _FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._training.saving(str(path), end_of_life=True, step=iteration):
            time.sleep(self._save_seconds)
            torch.save(self._state.content(), path)

    def rename(self, iteration: int) -> None:
        """Give the end-of-life checkpoint its name, and note it in the tracker."""
        final = self._directory / _name(iteration)
        os.rename(f"{final}_tmp", final)
        self._track(iteration)

    def load(self) -> None:
        """Go on from the checkpoint that the tracker names. Raises OSError where there is none."""
        import torch

        iteration = int((self._directory / TRACKER).read_text())
        content: Any = torch.load(self._directory / _name(iteration) / _FILE, weights_only=True)
        self._state.restore(content)

    def _track(self, iteration: int) -> None:
        unfinished = self._directory / f"{TRACKER}.new"
        unfinished.write_text(str(iteration))
        os.replace(unfinished, self._directory / TRACKER)


def _name(iteration: int) -> str:
    return f"iter_{iteration:07d}"
