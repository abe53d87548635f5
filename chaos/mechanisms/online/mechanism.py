"""UCE and HCCE, the online repairs, as the rest of the harness sees them.

``detection`` lasts from the fault until the controller knows of it (STATE_OP_ABNORMAL), ``stop`` until all ranks are
stopped and cleaned (STATE_OP_REPAIR), ``repair`` until all are told to go on (STATE_OP_NORMAL), ``first step`` until
every rank has ended its first step after that.
"""

from __future__ import annotations

from functools import partial

from chaos.mechanisms.online.budgets import BUDGETS
from chaos.mechanisms.online.plan import answer, check_promise
from chaos.mechanisms.repairs import ONLINE_REPAIR, REPAIR
from chaos.plan.job_effect import COMMUNICATION_ERROR, MEMORY_ERROR, SPARED_MEMORY_ERROR
from chaos.plan.recovery.registry import Mechanism, Signs

_SIGNS = Signs(
    name=ONLINE_REPAIR,
    handlers=frozenset({"clean", "repair", "rollback"}),
    lines=frozenset({"ttp.clean_begin", "ttp.rollback_begin", "ttp.rollback_done"}),
    states=frozenset({"REPAIR"}),
    repairs=frozenset({"retry"}),
    any_repair=True,
)
_PHASES = ("detection", "stop", "repair", "first step")

UCE = Mechanism(
    name="UCE",
    listed=2,
    order=30,
    answer=partial(answer, "UCE"),
    phases=_PHASES,
    budgets=BUDGETS,
    needs={
        "replicas": "a rank with a memory error is repaired with the state of its replica",
        "sink size 1": "only whole sinks can be replayed, so the failing step must be one sink",
        "MindIO": "the MindIO TFT controller steers the repair from the replica",
    },
    safeguarded=True,
    repairs=frozenset({MEMORY_ERROR, SPARED_MEMORY_ERROR}),
    in_place=True,
    in_step=True,
    no_whole_graph=True,
    since=(1, 5),
    strategy="retry",
    switched_by=("retry",),
    operations=REPAIR,
    signs=_SIGNS,
    recipes=("chaos.mechanisms.online.recipe:RECIPE", "chaos.mechanisms.online.recipe:MIXED"),
    drawn_errors=("uce", "ecc"),
    rule="chaos.mechanisms.online.rule:RULE",
)

HCCE = Mechanism(
    name="HCCE",
    listed=3,
    order=40,
    answer=partial(answer, "HCCE"),
    phases=_PHASES,
    budgets=BUDGETS,
    needs={
        "sink size 1": "the step that failed to communicate is replayed, so it must be one sink",
        "MindIO": "the MindIO TFT controller steers stop, clean and replay on all ranks",
    },
    check=check_promise,
    repairs=frozenset({COMMUNICATION_ERROR}),
    # MindSpore's wrapper around the training handles a communication error with UCE on, too.
    repairs_with=("UCE",),
    in_place=True,
    in_step=True,
    since=(1, 6),
    strategy="retry",
    switched_by=("retry",),
    operations=REPAIR,
    signs=_SIGNS,
    drawn_errors=("hcce",),
    rule="chaos.mechanisms.online.rule:RULE",
)
