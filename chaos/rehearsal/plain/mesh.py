"""A rank's place: ranks are a matrix of stage by data by model, the model dimension fastest."""

from __future__ import annotations

from dataclasses import dataclass

MOST_STAGES = 2
"""The network has two layers."""


@dataclass(frozen=True)
class Mesh:
    """One rank's place among ``ranks``, whose layers are cut into ``model_size`` slices and lie in ``stages``."""

    rank: int
    ranks: int
    model_size: int = 1
    stages: int = 1

    @property
    def stage(self) -> int:
        """The pipeline stage, from 0."""
        return self.rank // self._stage_size

    @property
    def data(self) -> int:
        """The part of the data that this rank trains on: ranks of a stage with the same slices have one each."""
        return self.rank % self._stage_size // self.model_size

    @property
    def model(self) -> int:
        """The slice of the layers that this rank holds."""
        return self.rank % self.model_size

    @property
    def first_stage(self) -> bool:
        """Whether this rank holds the first layer."""
        return self.stage == 0

    @property
    def last_stage(self) -> bool:
        """Whether this rank holds the last layer, and so knows the loss."""
        return self.stage == self.stages - 1

    @property
    def before(self) -> int:
        """The rank of the stage before, from which this rank receives its part of the layer's input."""
        return self.rank - self._stage_size

    @property
    def behind(self) -> int:
        """The rank of the next stage, to which this rank sends its part of the layer's output."""
        return self.rank + self._stage_size

    @property
    def model_group(self) -> tuple[int, ...]:
        """The ranks of the stage that share one batch, and hold all slices of its layers together."""
        first = self.rank - self.model
        return tuple(range(first, first + self.model_size))

    @property
    def group(self) -> int:
        """The number of this rank's replica group."""
        return self.stage * self.model_size + self.model

    @property
    def replicas(self) -> tuple[int, ...]:
        """The ranks that hold the same slices of the same layers, and their optimizer state."""
        return self.groups[self.group]

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The replica groups of the job, one for each slice of each stage."""
        size = self._stage_size
        return tuple(
            tuple(range(stage * size + model, (stage + 1) * size, self.model_size))
            for stage in range(self.stages)
            for model in range(self.model_size)
        )

    @property
    def _stage_size(self) -> int:
        return self.ranks // self.stages
