"""States of runs that no run has had."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rich.console import Console, Group
from rich.text import Text

from chaos.live.groups import group_states, grouping
from chaos.live.state import (
    Ends,
    EndState,
    FaultState,
    LiveState,
    LossState,
    PhaseState,
    RankState,
    RecoveryState,
    Waiting,
)
from tests.kit.plans import plan_with


def live_state(**values: Any) -> LiveState:
    """A run of four ranks in its recovery; rank 2 was killed."""
    states = {2: "ended by fault", 0: "saving", 3: "ended unplanned"}
    each = tuple(RankState(rank, 0, 0, "train", states.get(rank, "training"), step=6) for rank in range(4))
    each = tuple(
        replace(rank, end=EndState("exit code 3", False)) if rank.state == "ended unplanned" else rank for rank in each
    )
    state = LiveState(
        run="plain-kill-rank-1",
        directory="/reports/plain-kill-rank-1",
        now=131.0,
        scenario="plain-kill-rank",
        cell="victim=2",
        cell_number=2,
        cell_count=5,
        stage="train",
        started=100.0,
        elapsed=31.0,
        limit=600.0,
        step=6,
        steps=12,
        waiting=Waiting("end", "every rank ends", 120.0, 12.0, 300.0, "rank 0: step 6"),
        faults=(FaultState("kill", "kill", (2,), None, "landed", "step 5", 5, "step.end", 128.0, 3.2),),
        recovery=RecoveryState(
            "TTP",
            1,
            1,
            3.2,
            180.0,
            False,
            (PhaseState("detection", "ended", 0.8, 2.0), PhaseState("save", "now", 17.0, 15.0)),
        ),
        loss=LossState(0, 5, 1.5, 1.25),
        ranks=each,
        groups=tuple(group_states(grouping(plan_with(ranks=4)), each)),
        ends=Ends(1, 1),
    )
    return replace(state, **values)


def printed(lines: Iterable[Text], width: int, **options: Any) -> str:
    """The lines as a terminal of this width gets them, with its control sequences."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=width, color_system="256", **options)
    console.print(Group(*lines))
    return stream.getvalue()
