"""FT, torchft's fault tolerance by replica groups, as the rest of the harness sees it.

``stand-still`` lasts until any group commits a step again, ``relaunch`` until the lost groups have new processes,
``import`` until their own store is ready, ``heal`` until they have the state of another group. A phase that ends within
the one before it lasts no time.
"""

from __future__ import annotations

from chaos.mechanisms.ft.budgets import BUDGETS, longer
from chaos.mechanisms.ft.checked import check
from chaos.mechanisms.ft.plan import NAME, answer
from chaos.plan.recovery.registry import Mechanism

FT = Mechanism(
    name=NAME,
    listed=9,
    order=66,
    answer=answer,
    check=check,
    phases=("stand-still", "relaunch", "import", "heal", "first step"),
    budgets=BUDGETS,
    longer=longer,
    of_launcher=True,
    starts_ranks=True,
    rejoins=True,
    cut_off="each replica group is a process of this host",
    rule="chaos.mechanisms.ft.rule:RULE",
)
