"""Random scenarios that a rollback answers."""

from __future__ import annotations

from random import Random
from typing import Any

from chaos.mechanisms.drawing import Keys, Recipe, a_step
from chaos.plan.recovery.mechanism import REPLACING

_THRESHOLD = 5.0


def _complete(draw: Random, cluster: Keys, job: Keys) -> list[Any]:
    job.update(protection=["TRE"], tre={"threshold": _THRESHOLD}, checkpoint_interval=draw.randint(2, 4))
    if draw.random() < 0.3:
        job.update(protection=["TRE", *REPLACING], agent=True)
    spike = {"kind": "spike", "target": {"rank": draw.randrange(cluster["ranks"])}, "parameters": {"norm": 7.5}}
    return [{"id": "spike", **spike, "trigger": {"step": a_step(draw, job), "phase": "allreduce.enter"}}]


RECIPE = Recipe(name="TRE", turn=50, complete=_complete)
