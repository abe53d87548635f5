"""Holding a fault in an attached job: until its time is over, or until it holds in no rank any more."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass

from chaos.attach.outcome import Hit
from chaos.base.clock import Clock
from chaos.faults.behaviours import StillShown
from chaos.faults.kind import FaultMissed, Victim
from chaos.machine.linux.process import has_ended
from chaos.machine.running.adopted import AdoptedJob
from chaos.run.inject.fault_record import FaultRecord

_LOOK_SECONDS = 0.1

_AS_LANDED = ("group", "limit")
"""Fields of the evidence that stay the same while a fault holds: another value is somebody else's doing."""


@dataclass(frozen=True)
class Holding:
    """Checks a landed fault for as long as it lasts. ``adopted_job`` holds the ranks."""

    kind: StillShown
    adopted_job: AdoptedJob
    record: FaultRecord
    clock: Clock

    def wait(self, landed: Mapping[int, tuple[Hit, Victim]], seconds: float | None) -> dict[int, str]:
        """Wait until the time is over, or until the fault holds in no rank any more.

        ``landed`` has the hits and their targets by PID. Returns, by PID, how the fault ended where it held for a
        shorter time.
        """
        began = self.clock.mono()
        early: dict[int, str] = {}
        while len(early) < len(landed) and (left := self._left_of(seconds, began)) > 0:
            for pid, (hit, victim) in landed.items():
                if pid in early or (how := self._over(hit, victim)) is None:
                    continue
                since = "it had been stopped" if self._stops else "the fault had landed"
                early[pid] = f"{how} {self._since(began):.1f} s after {since}"
                self.record.event("fault.ending", rank=hit.process.rank, pid=pid, why=early[pid])
            self.clock.sleep(min(_LOOK_SECONDS, left))
        return early

    def _left_of(self, seconds: float | None, began: int) -> float:
        return _LOOK_SECONDS if seconds is None else seconds - self._since(began)

    @property
    def _stops(self) -> bool:
        return self.kind.signal == signal.SIGSTOP

    def _over(self, hit: Hit, victim: Victim) -> str | None:
        """Return how the fault ended in a rank before it was undone; None while it holds."""
        state = self.adopted_job.state(hit.process.identity)
        if self._stops:
            return None if state == "stopped" else f"{'continued' if state == 'alive' else 'ended'} by another process"
        if has_ended(state) and not self.kind.outlives_ranks:
            return "the rank has ended"
        try:
            shown = self.kind.still(self.adopted_job, victim)
        except (FaultMissed, LookupError, OSError) as error:
            return f"the fault no longer shows ({error})"
        landed = hit.evidence or {}
        if shown is None or any(shown[name] != landed.get(name) for name in _AS_LANDED if name in shown):
            return "the fault no longer shows: another process has undone it"
        return None

    def _since(self, began: int) -> float:
        return (self.clock.mono() - began) / 1e9
