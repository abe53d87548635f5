"""TTP, the end-of-life checkpoint, as the rest of the harness sees it."""

from __future__ import annotations

from chaos.mechanisms.ttp.budgets import BUDGETS
from chaos.mechanisms.ttp.plan import answer
from chaos.plan.recovery.registry import Mechanism, Signs

TTP = Mechanism(
    name="TTP",
    listed=1,
    order=70,
    answer=answer,
    phases=("detection", "stop", "save", "exit", "relaunch", "load", "compile", "first step", "caught up"),
    budgets=BUDGETS,
    needs={
        "replicas": "a surviving replica of every rank must be there to save the end-of-life checkpoint",
        "sink size 1": "the number of the saved step is right only when one step is one sink",
        "MindIO": "the MindIO TFT controller collects the ranks' states and chooses who saves",
    },
    in_step=True,
    saves=True,
    ends_launch=True,
    since=(1, 5),
    strategy="dump",
    switched_by=("dump",),
    operations=frozenset({"SAVECKPT", "RENAME"}),
    signs=Signs(
        name="TTP",
        handlers=frozenset({"save_ckpt", "rename"}),
        lines=frozenset({"ttp.dump_config", "ttp.dump_begin", "ttp.renamed", "ttp.dump_done"}),
    ),
    recipes=("chaos.mechanisms.ttp.recipe:RECIPE",),
    rule="chaos.mechanisms.ttp.rule:RULE",
)
