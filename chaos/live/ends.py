"""The ends of the ranks' processes: as planned, or not."""

from __future__ import annotations

from collections import Counter

from chaos.checks.hygiene.exits import fault_by_rank, judged_exits
from chaos.evidence.facts import RESUME, TRAIN
from chaos.history.reader import History
from chaos.live.state import Ends
from chaos.plan.model import Plan

Process = tuple[str | None, int | None, int | None]
"""A process of the job: its attempt, its rank and its PID."""


class JudgedEnds:
    """The ends so far, judged as the check does at the end of the run."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._known = (-1, False)
        self.planned: dict[Process, bool | None] = {}

    def look(self, history: History, running: str) -> None:
        """Judge the ends of a history. ``running`` is the attempt that goes on; empty when none does."""
        exits, acts = history.select("rank.exit"), history.select("fault.injecting")
        known = (len(exits) + len(acts), bool(running))
        if known == self._known:
            return
        self._known = known
        self.planned = {}
        first_act = min((act.mono for act in acts), default=None)
        hit = fault_by_rank(self._plan, history)
        for attempt in (TRAIN, RESUME):
            for rank in dict.fromkeys(event.rank for event in exits if event.attempt == attempt):
                rank_exits = history.select("rank.exit", attempt=attempt, rank=rank)
                fault = hit.get(-1 if rank is None else rank) if attempt == TRAIN else None
                for judged in judged_exits(self._plan, history, rank_exits, fault, running=running == attempt):
                    event = judged.event
                    planned = judged.planned
                    if planned and event.data.get("code") != 0 and (first_act is None or event.mono < first_act):
                        planned = False  # the plan has its end for a fault, which has not been made yet
                    self.planned[attempt, rank, event.pid] = planned

    @property
    def counts(self) -> Ends:
        """The number of planned and of unplanned ends."""
        counts = Counter(self.planned.values())
        return Ends(counts[True], counts[False])
