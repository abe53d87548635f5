"""ELASTIC, torchrun's restart of all ranks (``--max-restarts``), as the rest of the harness sees it.

``detection`` lasts until the first rank that no fault hit has ended, ``stop`` until all have ended, ``relaunch`` until
the first new process has started, ``import`` until the process group of all is ready, ``load`` until all have their
state.
"""

from __future__ import annotations

from chaos.mechanisms.elastic.budgets import BUDGETS, longer
from chaos.mechanisms.elastic.checked import check
from chaos.mechanisms.elastic.plan import NAME, answer
from chaos.plan.recovery.registry import Mechanism

ELASTIC = Mechanism(
    name=NAME,
    listed=8,
    order=65,
    answer=answer,
    check=check,
    phases=("detection", "stop", "relaunch", "import", "load", "first step", "caught up"),
    budgets=BUDGETS,
    longer=longer,
    of_launcher=True,
    starts_ranks=True,
    restarts_all=True,
    meets_damage=True,
    names_cause=True,
    by_survivors=True,
    cut_off="each node has a torchrun of its own, which ends its ranks and waits for the others",
    recipes=("chaos.mechanisms.elastic.recipe:RECIPE",),
    rule="chaos.mechanisms.elastic.rule:RULE",
)
