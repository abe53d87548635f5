"""Random scenarios that process-level rescheduling answers."""

from __future__ import annotations

from random import Random
from typing import Any

from chaos.mechanisms.drawing import COPYING, Keys, Maker, Recipe, a_loss, an_error, one_after_another


def _complete(draw: Random, cluster: Keys, job: Keys) -> list[Any]:
    job["protection"] = draw.choice((["ARF"], ["ARF", *COPYING]))
    job["agent"] = True
    makers: list[Maker] = [a_loss] * draw.choice((1, 1, 2))
    if not COPYING.isdisjoint(job["protection"]):
        makers.insert(0, an_error)
    faults = one_after_another(draw, cluster, job, makers)
    if draw.random() < 0.2:
        last = {"kind": "kill", "target": {"rank": draw.randrange(cluster["ranks"])}}
        last["trigger"] = {"handler": draw.choice(("rebuild_group", "clean", "repair")), "after": faults[-1]["id"]}
        faults.append({"id": f"inside-{len(faults)}", **last})
    return faults


RECIPE = Recipe(name="ARF", turn=30, complete=_complete)
