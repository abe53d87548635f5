"""A rank's place: ranks are a matrix of data by model, the model dimension fastest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mesh:
    """One rank's place among ``ranks``, whose layers are cut into ``model_size`` slices."""

    rank: int
    ranks: int
    model_size: int = 1

    @property
    def data(self) -> int:
        """The part of the data that this rank trains on: ranks with the same slices have one each."""
        return self.rank // self.model_size

    @property
    def model(self) -> int:
        """The slice of the layers that this rank holds."""
        return self.rank % self.model_size

    @property
    def model_group(self) -> tuple[int, ...]:
        """The ranks that share one batch, and hold all slices together."""
        first = self.rank - self.model
        return tuple(range(first, first + self.model_size))

    @property
    def replicas(self) -> tuple[int, ...]:
        """The ranks that hold the same slices and optimizer state."""
        return self.groups[self.model]

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The replica groups of the job, one for each slice."""
        return tuple(tuple(range(model, self.ranks, self.model_size)) for model in range(self.model_size))
