"""Random scenarios that a restart of all ranks answers."""

from __future__ import annotations

from random import Random
from typing import Any

from chaos.mechanisms.drawing import Keys, Recipe, a_loss, one_after_another


def _complete(draw: Random, cluster: Keys, job: Keys) -> list[Any]:
    job.update(protection=["RSC"], agent=True, checkpoint_interval=draw.randint(2, 4))
    return one_after_another(draw, cluster, job, [a_loss] * draw.choice((1, 1, 2)))


RECIPE = Recipe(name="RSC", turn=40, complete=_complete)
