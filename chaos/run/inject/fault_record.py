"""The history's record of one fault: armed, being made, landed or missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chaos.faults.kind import FaultKind, Victim
from chaos.run.progress import Recorder


@dataclass(frozen=True)
class FaultRecord:
    """Records the events of one fault. ``fault`` is its id, ``kind`` the requested name of its kind."""

    history: Recorder
    attempt: str
    fault: str
    kind: str

    def armed(self, ranks: Sequence[int | None], **more: Any) -> None:
        """Record that the fault is going to be made."""
        self.event("fault.armed", ranks=list(ranks), **more)

    def injecting(
        self, kind: FaultKind, victim: Victim, target: Mapping[str, Any], *, rank: int | None, **more: Any
    ) -> None:
        """Record that the fault is about to be made in one target. ``target`` names it."""
        self.event(
            "fault.injecting",
            rank=rank,
            pid=victim.identity.pid,
            signal=None if kind.signal is None else int(kind.signal),
            **target,
            start_time=victim.identity.start_time,
            **more,
        )

    def landed(self, ranks: Sequence[int | None], evidence: list[dict[str, Any]]) -> None:
        """Record that the fault has landed, with the evidence of each target (:func:`evidence_of`)."""
        barrier = evidence[0]["barrier"] or {"step": None, "phase": None}
        self.event("fault.landed", ranks=list(ranks), step=barrier["step"], phase=barrier["phase"], evidence=evidence)

    def missed(self, reason: str, **more: Any) -> None:
        """Record that the fault has not landed."""
        self.event("fault.missed", reason=reason, **more)

    def event(self, event: str, /, *, rank: int | None = None, pid: int | None = None, **data: Any) -> None:
        """Record another event of the fault."""
        about = {"fault": self.fault, "kind": self.kind}
        self.history.record(event, attempt=self.attempt, rank=rank, pid=pid, **about, **data)


def evidence_of(
    target: Mapping[str, Any], pid: int, shown: Mapping[str, Any], barrier: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the evidence of one target as the history has it. ``barrier`` is where the rank was held, if it was."""
    return {**target, "pid": pid, **shown, "barrier": barrier}
