"""ARF, process-level rescheduling, as the rest of the harness sees it.

It has two phases more than an online repair before ``repair``: ``restart`` lasts until new processes have registered
and the groups begin to be rebuilt, ``rebuild`` until they have come to their first collective and the copying of state
begins.
"""

from __future__ import annotations

from chaos.mechanisms.arf.budgets import BUDGETS
from chaos.mechanisms.arf.plan import answer, check_chooser
from chaos.mechanisms.repairs import ONLINE_REPAIR, REPAIR
from chaos.plan.recovery.registry import Mechanism, Signs

ARF = Mechanism(
    name="ARF",
    listed=5,
    order=50,
    answer=answer,
    phases=("detection", "stop", "restart", "rebuild", "repair", "first step"),
    budgets=BUDGETS,
    needs={
        "replicas": "a replacement rank gets its state from its replica",
        "sink size 1": "the step in which the rank was lost is replayed, so it must be one sink",
        "MindIO": "the MindIO TFT controller steers the rebuilding of the groups and the copy to the new rank",
    },
    safeguarded=True,
    check=check_chooser,
    in_step=True,
    starts_ranks=True,
    no_whole_graph=True,
    since=(1, 5),
    strategy="recover",
    switched_by=("recover-in-place", "recover", "exit"),
    operations=REPAIR | {"PTCOMM_OPERATE"},
    signs=Signs(
        name="ARF",
        handlers=frozenset({"rebuild_group"}),
        lines=frozenset({"ttp.groups_rebuilt", "ttp.group_rebuild", "ttp.reboot"}),
        repairs=frozenset({"arf"}),
        also=frozenset({ONLINE_REPAIR}),  # it cleans and copies, too
    ),
    recipes=("chaos.mechanisms.arf.recipe:RECIPE",),
    rule="chaos.mechanisms.arf.rule:RULE",
    cut_off="new processes of the lost ranks would start on nodes that are cut off, or on nodes that are not named",
)
