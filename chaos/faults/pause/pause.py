"""``pause``: pauses the training of all ranks after a step, as the cluster's manager would (TSP).

All ranks stay paused for ``seconds``, from the last rank's pause on. ``switch: true`` switches the network to its
backup meanwhile.

On Ascend: MindCluster switches a degraded network.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chaos.faults.behaviours import Lasting
from chaos.faults.kind import FaultMissed, Victim
from chaos.faults.own_record import own_event
from chaos.faults.pause.paused import paused_at
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.linux.process import has_ended
from chaos.plan.job_effect import PAUSE

_MARGIN_SECONDS = 60
"""Seconds that the controller waits for the order to go on, beyond the requested time; the harness sends it."""


class Pause(Lasting):
    """Pauses all ranks, switches the network if the scenario asks for it, and lets them go on."""

    name = "pause"
    effect = PAUSE

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        """Let the training go on, as it also does when the harness is gone."""
        ranks = [{"record": str(victim.record), **asdict(victim.identity)} for victim in victims]
        return [UndoStep(f"{fault}-continue", fault, "continue-training", {"ranks": ranks}, "let the training go on")]

    def inject(self, job: Job, victim: Victim) -> None:
        """Ask for the pause; for another rank of the same fault, it is the same pause."""
        del job
        limit = int(float(victim.parameters.get("seconds", 0)) + _MARGIN_SECONDS)
        if not victim.tell_controller({"message": "pause", "fault": victim.fault, "limit": limit}):
            raise FaultMissed(
                "nothing in the process of the SDK's controller takes orders: is TSP on, and the controller started?"
            )

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the rank's own record that its training is blocked. Raises FaultMissed if the rank has ended."""
        step = paused_at(victim.record)
        if step is not None:
            return {"signal": None, "paused": step}
        if has_ended(job.state(victim.identity)):
            raise FaultMissed(f"rank {victim.rank} has ended before it was paused")
        return None

    def lasts(self, victim: Victim) -> float:
        """Return the seconds from the moment at which all ranks are paused."""
        return float(victim.parameters.get("seconds", 0))

    def note_landing(self, victim: Victim) -> None:
        """Switch the network, now that all ranks are paused."""
        if victim.parameters.get("switch"):
            victim.tell_worker({"message": "switch", "fault": victim.fault})

    def may_end(self, job: Job, victim: Victim) -> bool:
        """Return whether this rank has nothing left to do during the pause."""
        if not victim.parameters.get("switch") or has_ended(job.state(victim.identity)):
            return True
        return own_event(victim.record, "network.switched", victim.fault) is not None

    def end(self, victim: Victim) -> None:
        """Let the training go on."""
        victim.tell_controller({"message": "continue", "fault": victim.fault})

    def ended(self, job: Job, victim: Victim) -> bool:
        """Return whether this rank trains again, or has ended."""
        return has_ended(job.state(victim.identity)) or paused_at(victim.record) is None


KIND = Pause()
