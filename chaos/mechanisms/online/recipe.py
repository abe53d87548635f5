"""Random scenarios that online repairs answer, and scenarios in which a loss ends the launch after them."""

from __future__ import annotations

from random import Random
from typing import Any

from chaos.mechanisms.drawing import Keys, Recipe, a_loss, an_error, one_after_another
from chaos.plan.recovery.mechanism import REPLACING


def _complete(draw: Random, cluster: Keys, job: Keys) -> list[Any]:
    job["protection"] = draw.choice((["UCE"], ["HCCE"], ["UCE", "HCCE"], ["UCE", *REPLACING]))
    if not REPLACING.isdisjoint(job["protection"]) or draw.random() < 0.2:
        job["agent"] = True
    return one_after_another(draw, cluster, job, [an_error] * draw.randint(1, 3))


def _mixed(draw: Random, cluster: Keys, job: Keys) -> list[Any]:
    """Return errors that are repaired online, then a loss that ends the launch."""
    job["protection"] = ["UCE", "HCCE"]
    return one_after_another(draw, cluster, job, [*[an_error] * draw.randint(1, 2), a_loss])


RECIPE = Recipe(name="UCE", turn=20, complete=_complete)
MIXED = Recipe(name="mixed", turn=70, complete=_mixed)
