"""The recovery in progress, in phases: by the rules that measure it when the run is judged."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from chaos.base.plain_files import Share, reading_at_most
from chaos.evidence.recovery_windows import Ambiguous, chains, end_of_job, ending_faults
from chaos.evidence.timestamp import Timestamp
from chaos.history.reader import History
from chaos.live.state import PhaseState, RecoveryState
from chaos.plan.model import Plan
from chaos.plan.phases import RESTARTED, is_restart, phase_names

_BETWEEN_LOOKS_NS = 500_000_000
_REST = 5
"""Ratio of the time between two looks to the time that a look takes, at least: a look reads the logs of the SDK."""

_MOST_BYTES = 1 << 30
_MOST_HOLES = 64 << 20
"""Bytes that a look may read, and those of them that may be holes of files."""


class Recoveries:
    """The recoveries that the plan has for the faults so far. A look at the phases is seldom, and shared by callers."""

    def __init__(self, plan: Plan, run_dir: Path) -> None:
        self._plan = plan
        self._run_dir = run_dir
        self._chains = chains(plan)
        self._is_restart = is_restart(plan)
        self._of = sum(chain[-1].succeeds for chain in self._chains) + 1 if self._is_restart else len(self._chains)
        self._ends: tuple[int, list[tuple[str, Timestamp | str]]] = (0, [])
        self._begin: int | None = None
        self._due = 0
        self._looked_last = False

    @property
    def by_fault(self) -> dict[str, int]:
        """The number of the recovery that each fault calls for; of several the last."""
        numbered = enumerate(self._chains, 1)
        numbers = {name: number for number, chain in numbered for recovery in chain for name in recovery.faults}
        if self._is_restart:
            numbers |= {fault.id: self._of for fault in ending_faults(self._plan)}
        return numbers

    def state(self, history: History, now: int, *, over: bool = False) -> RecoveryState | None:
        """Return the latest recovery at ``now`` of the monotonic clock; None before its fault is made.

        ``over``: the run has ended, so that nothing more can come.
        """
        current = self._current(history)
        if current is None:
            return None
        number, mechanism, begin = current
        if begin != self._begin:
            self._begin, self._due, self._ends = begin, 0, (0, [])
        # The clock of a run that has ended stands still, and would never reach the next look.
        last = over and not self._looked_last
        if (now >= self._due or last) and not self._complete():
            began = time.monotonic_ns()
            self._ends = (number, self._look(mechanism, begin, history))
            self._looked_last = over
            self._due = now + max(_BETWEEN_LOOKS_NS, _REST * (time.monotonic_ns() - began))
        return self._assembled(mechanism, begin, now, over=over)

    def _current(self, history: History) -> tuple[int, str, int] | None:
        """Return the latest recovery with an act of its faults: its number, what is tried last, and its beginning."""
        if self._is_restart:
            with contextlib.suppress(Ambiguous):  # the job has not ended yet
                return self._of, RESTARTED, end_of_job(self._plan, history).mono
        for number in range(len(self._chains), 0, -1):
            chain = self._chains[number - 1]
            faults = dict.fromkeys(name for recovery in chain for name in recovery.faults)
            acts = [event.mono for name in faults for event in history.select("fault.injecting", fault=name)]
            if acts:
                return number, chain[-1].mechanism, min(acts)
        return None

    def _complete(self) -> bool:
        ends = self._ends[1]
        return bool(ends) and all(isinstance(end, Timestamp) for _, end in ends)

    def _plan_of(self, mechanism: str) -> Plan:
        if mechanism == RESTARTED:
            return self._plan
        return replace(self._plan, response=replace(self._plan.response, mechanism=mechanism))

    def _look(self, mechanism: str, begin: int, history: History) -> list[tuple[str, Timestamp | str]]:
        plan = self._plan_of(mechanism)
        if not phase_names(plan):
            return []
        # What judges a run takes a while to import. It is imported when there is something to look at.
        from chaos.evidence.artifacts import Artifacts
        from chaos.mechanisms.markers import Launch
        from chaos.mechanisms.registry import phase_ends

        launch = Launch(plan, history, Artifacts(self._run_dir, None))
        try:
            with reading_at_most(Share(_MOST_BYTES, _MOST_HOLES)):
                return list(phase_ends(launch, begin))
        except Exception as error:  # rules of other packages too; half of a record is no fault of theirs
            return [(name, str(error)) for name in phase_names(plan)]

    def _assembled(self, mechanism: str, begin: int, now: int, *, over: bool) -> RecoveryState:
        decides = mechanism == RESTARTED or mechanism == self._plan.response.mechanism
        budgets = self._plan.response.budget.phases if decides else {}
        total = self._plan.response.budget.total if decides else None
        number, ends = self._ends
        phases = _phases(ends, begin, now, budgets)
        if over:
            phases = [
                phase if phase.state == "ended" else replace(phase, state="missing", seconds=None) for phase in phases
            ]
        ended = bool(phases) and phases[-1].state == "ended"
        last = ends[-1][1] if ends else ""
        until = last.mono if ended and isinstance(last, Timestamp) else now
        elapsed = max(0.0, (until - begin) / 1e9)
        return RecoveryState(mechanism, number, self._of, elapsed, total, ended, tuple(phases))


def _phases(
    ends: Sequence[tuple[str, Timestamp | str]], begin: int, now: int, budgets: dict[str, float]
) -> list[PhaseState]:
    """Return the phases: all before the last known end have ended, and the next one goes on."""
    known = [number for number, (_, end) in enumerate(ends) if isinstance(end, Timestamp)]
    reached = known[-1] + 1 if known else 0
    moments = [begin, *(end.mono if isinstance(end, Timestamp) else None for _, end in ends)]
    phases = []
    for number, ((name, _), (since, until)) in enumerate(zip(ends, pairwise(moments), strict=True)):
        if number > reached:
            phases.append(PhaseState(name, "later", None, budgets.get(name)))
            continue
        state = "ended" if number < reached else "now"
        until = now if state == "now" else until
        seconds = None if since is None or until is None else max(0.0, (until - since) / 1e9)
        phases.append(PhaseState(name, state, seconds, budgets.get(name)))
    return phases
