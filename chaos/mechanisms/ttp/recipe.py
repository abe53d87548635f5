"""Random scenarios that an end-of-life checkpoint answers."""

from __future__ import annotations

from random import Random
from typing import Any

from chaos.mechanisms.drawing import Keys, Recipe, a_loss, a_step


def _complete(draw: Random, cluster: Keys, job: Keys) -> list[Any]:
    job["protection"] = ["TTP"]
    if draw.random() < 0.4:
        job["controller"] = "outside"
    elif draw.random() < 0.3:
        job["agent"] = True
    return [a_loss(draw, cluster, job, a_step(draw, job))]


RECIPE = Recipe(name="TTP", turn=10, complete=_complete)
