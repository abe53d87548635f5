"""The network, its optimizer and its data: small, and the same bits in every run of a seed.

The state is what a checkpoint restores and a replica gives: weights, the optimizer's slots, the iteration's number.
"""

from __future__ import annotations

from typing import Any

from chaos.agent.torch.optimizers import state_of

FEATURES, CLASSES, BATCH = 16, 4, 8
_RATE = 1e-2


class State:
    """The model and the optimizer of one rank, and the iterations that they have behind them."""

    def __init__(self, seed: int, iterations: int) -> None:
        import torch
        from torch import nn

        torch.manual_seed(seed)
        self._seed = seed
        self._iterations = iterations
        self.iteration = 0
        self.model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, CLASSES))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=_RATE)
        for weight in self.model.parameters():
            # As Megatron does: the slots exist before the first step, so a replica and a checkpoint always have them.
            self.optimizer.state[weight] = {
                "step": torch.tensor(0.0),
                "exp_avg": torch.zeros_like(weight),
                "exp_avg_sq": torch.zeros_like(weight),
            }

    def named(self) -> list[tuple[str, Any]]:
        """Return all tensors by name."""
        return list(state_of(self.model, [self.optimizer]))

    def tensors(self) -> list[Any]:
        """Return all tensors, in the same order on every rank."""
        return [tensor for _, tensor in self.named()]

    def update(self) -> None:
        """Update the weights, at the rate that the schedule has for this iteration."""
        for group in self.optimizer.param_groups:
            group["lr"] = _RATE * (1.0 - 0.9 * self.iteration / self._iterations)
        self.optimizer.step()
        self.iteration += 1

    def batch(self, rank: int) -> tuple[Any, Any]:
        """Return the points and labels that a rank trains in the next iteration, and seed the noise of that iteration.

        They depend on seed, iteration and rank alone, so an iteration that is trained again is the same.
        """
        import torch

        centres = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(self._seed))
        draw = torch.Generator().manual_seed(self._seed * 1_000_003 + (self.iteration + 1) * 1009 + rank)
        labels = torch.randint(CLASSES, (BATCH,), generator=draw)
        points = centres[labels] + 0.5 * torch.randn(BATCH, FEATURES, generator=draw)
        torch.manual_seed(self._seed * 100_003 + (self.iteration + 1) * 1009 + rank)
        return points, labels

    def content(self) -> dict[str, Any]:
        """Return what a checkpoint holds."""
        return {
            "iteration": self.iteration,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def restore(self, content: dict[str, Any]) -> None:
        """Take the state from a checkpoint."""
        self.model.load_state_dict(content["model"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.iteration = content["iteration"]
