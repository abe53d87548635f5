"""RSC, the restart of all ranks, as the rest of the harness sees it.

``detection`` lasts until the first living rank is killed, ``stop`` until all have ended, ``relaunch`` until all have
started again, ``load`` until all have their state; the other phases as after an end-of-life checkpoint.
"""

from __future__ import annotations

from chaos.mechanisms.rsc.budgets import BUDGETS
from chaos.mechanisms.rsc.plan import answer
from chaos.plan.recovery.registry import Mechanism

RSC = Mechanism(
    name="RSC",
    listed=7,
    order=60,
    answer=answer,
    phases=("detection", "stop", "relaunch", "load", "compile", "first step", "caught up"),
    budgets=BUDGETS,
    starts_ranks=True,
    restarts_all=True,
    cut_off="the cluster's agent would start ranks again on nodes that it does not reach",
    recipes=("chaos.mechanisms.rsc.recipe:RECIPE",),
    rule="chaos.mechanisms.rsc.rule:RULE",
)
