"""TRE, the rollback of an abnormal step, as the rest of the harness sees it.

``detection`` lasts from the fault until every rank begins to load the checkpoint, ``load`` until every rank has,
``caught up`` until every rank has ended the abnormal step again.
"""

from __future__ import annotations

from chaos.mechanisms.tre.budgets import BUDGETS
from chaos.mechanisms.tre.plan import answer, check_abnormal, rolled_back
from chaos.plan.job_effect import ABNORMAL_RESULT
from chaos.plan.recovery.registry import Mechanism, Signs

TRE = Mechanism(
    name="TRE",
    listed=4,
    order=20,
    answer=answer,
    phases=("detection", "load", "first step", "caught up"),
    budgets=BUDGETS,
    check=check_abnormal,
    repairs=frozenset({ABNORMAL_RESULT}),
    repairs_if=rolled_back,
    only_one=True,
    rolls_back=True,
    since=(1, 6),
    other_states={"2": "rollback to a snapshot"},
    signs=Signs(
        name="TRE",
        ranks={
            "tre.thrown": "an abnormal norm stops the training",
            "tft.resumed": "training resumed after TREError",
        },
    ),
    recipes=("chaos.mechanisms.tre.recipe:RECIPE",),
    rule="chaos.mechanisms.tre.rule:RULE",
)
