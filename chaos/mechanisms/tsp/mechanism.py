"""TSP, the pause, as the rest of the harness sees it.

``stop`` lasts from the order until all ranks are paused, ``pause`` until they are ordered to go on, ``first step``
until every rank has ended its first step after that.
"""

from __future__ import annotations

from chaos.mechanisms.tsp.budgets import BUDGETS
from chaos.mechanisms.tsp.pauses import check_pauses
from chaos.mechanisms.tsp.plan import answer
from chaos.plan.recovery.registry import Mechanism, Signs

TSP = Mechanism(
    name="TSP",
    listed=6,
    order=10,
    answer=answer,
    phases=("stop", "pause", "first step"),
    budgets=BUDGETS,
    needs={"MindIO": "the MindIO TFT controller pauses the ranks after the same step"},
    check=check_pauses,
    pauses=True,
    only_one=True,
    since=(1, 6),
    operations=frozenset({"PAUSE", "CONTINUE"}),
    signs=Signs(name="TSP", handlers=frozenset({"stream_sync"}), states=frozenset({"PAUSE"})),
    recipes=("chaos.mechanisms.tsp.recipe:RECIPE",),
    rule="chaos.mechanisms.tsp.rule:RULE",
)
