"""The steps that the planned job trains."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.plan.checkpoints.savers import every_rank_saves
from chaos.plan.traits import JobTraits
from chaos.scenario.models import job
from chaos.scenario.models.scenario import Scenario

MOST_STEPS_PER_UPDATE = job.MOST_STEPS_PER_UPDATE


@dataclass(frozen=True)
class Training:
    """The job's seed and steps, and the records of them.

    ``sink_size`` is how many steps may be recorded as one. ``steps_per_update`` is the number of steps in one update of
    the optimizer; None in plans of earlier versions, which took every step for an update. ``checkpoint_interval`` is
    None where no periodic checkpoint is saved. ``every_rank_saves``: each rank saves them; else at least one rank of
    each replica group does. ``gradients``: the ranks record their reduced gradients.
    """

    seed: int
    last_step: int
    steps_per_epoch: int
    checkpoint_interval: int | None
    steps_per_update: int | None = None
    sink_size: int = 1
    gradients: bool = True
    every_rank_saves: bool = True


def plan_training(scenario: Scenario, traits: JobTraits) -> Training:
    """Return the training that the scenario asks for."""
    asked = scenario.job
    return Training(
        seed=asked.seed,
        last_step=asked.steps,
        steps_per_epoch=asked.steps_per_epoch or asked.steps,
        checkpoint_interval=asked.checkpoint_interval,
        steps_per_update=asked.steps_per_update or 1,
        sink_size=asked.sink_size,
        gradients=traits.gradients,
        every_rank_saves=every_rank_saves(scenario),
    )
