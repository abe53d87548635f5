"""Random scenarios that pause the training."""

from __future__ import annotations

from random import Random
from typing import Any

from chaos.mechanisms.drawing import COPYING, Keys, Maker, Recipe, a_loss, a_pause, an_error, one_after_another
from chaos.plan.recovery.mechanism import SAVING


def _complete(draw: Random, cluster: Keys, job: Keys) -> list[Any]:
    job["protection"] = draw.choice((["TSP"], [*SAVING, "TSP"], ["TSP", *COPYING]))
    if draw.random() < 0.4:
        job["controller"] = "outside"
    makers: list[Maker] = [a_pause]
    if not SAVING.isdisjoint(job["protection"]) and draw.random() < 0.5:
        makers.append(a_loss)
    if not COPYING.isdisjoint(job["protection"]):
        makers.insert(draw.randrange(2), an_error)
    return one_after_another(draw, cluster, job, makers)


RECIPE = Recipe(name="TSP", turn=60, complete=_complete)
