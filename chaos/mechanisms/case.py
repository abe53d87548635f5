"""The input of a rule: one planned recovery, its time, and the evidence."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN
from chaos.evidence.protection import REGISTERED
from chaos.evidence.recovery_windows import Window
from chaos.evidence.scenario_line import line_of
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.model import Plan
from chaos.plan.parts.response import Recovery


@dataclass(frozen=True)
class Case:
    """One recovery to judge. Where ``recovery.succeeds`` is False, it must have been tried and have failed."""

    plan: Plan
    window: Window
    recovery: Recovery
    history: History
    artifacts: Artifacts
    collector: Collector

    @property
    def line(self) -> str:
        """The scenario's line that the expectation comes from."""
        return line_of(self.plan, "mechanism")

    def calls(self, name: str, event: str = "handler.enter") -> dict[int, list[Event]]:
        """Return the calls of a handler within this recovery, by rank."""
        by_rank: dict[int, list[Event]] = {}
        for fact in self.window.of(self.history.select(event, attempt=TRAIN, name=name)):
            if fact.rank is not None:
                by_rank.setdefault(fact.rank, []).append(fact)
        return by_rank

    def records_calls(self, name: str) -> bool:
        """Return whether every rank's agent wrapped its handler, so that an unrecorded call was not made."""
        registered = self.history.select(REGISTERED, attempt=TRAIN, name=name)
        return {event.rank for event in registered} >= set(range(self.plan.layout.ranks))

    def logged(self) -> list[LogEvent]:
        """Return the SDK's log of the faulted launch, from its beginning to its end."""
        return self.artifacts.sdk_events(TRAIN)
