"""Random scenarios that torchrun's restart of all ranks answers: one or two faults of any rank, step and phase."""

from __future__ import annotations

from random import Random
from typing import Any

from chaos.mechanisms.drawing import PHASES, Keys, Recipe, one_after_another
from chaos.mechanisms.elastic.plan import NAME

_ENDS: tuple[dict[str, Any], ...] = (
    {"kind": "kill"},
    {"kind": "kill"},
    {"kind": "exit", "parameters": {"code": 7}},
    {"kind": "exception"},
)
"""Ways in which a rank ends, as often as they are drawn."""


def _an_end(draw: Random, cluster: Keys, job: Keys, step: int) -> Any:
    end = {"target": {"rank": draw.randrange(cluster["ranks"])}, **draw.choice(_ENDS)}
    return {**end, "trigger": {"step": step, "phase": draw.choice(PHASES)}}


def _complete(draw: Random, cluster: Keys, job: Keys) -> list[Any]:
    job.update(protection=[NAME])
    return one_after_another(draw, cluster, job, [_an_end] * draw.choice((1, 1, 2)))


RECIPE = Recipe(name=NAME, turn=45, complete=_complete)
