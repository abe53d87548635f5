"""``clock-skew``: sets the wall clock of a rank's Python wrong by ``offset`` seconds, until its process ends.

``time.time`` and logging are wrong; the machine, native code and the histories keep the right time.

On Ascend: a host without NTP.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from chaos.faults.in_rank import InRank
from chaos.faults.kind import Victim
from chaos.faults.own_record import own_proof
from chaos.faults.rank_acts.hanging import PHASES
from chaos.machine.job.protocol import Job
from chaos.plan.job_effect import NONE
from chaos.plan.rules.parameters import Parameter, Parameters
from chaos.plan.rules.required_place import RequiredPlace

_MOST = 10 * 365 * 86400.0

_OFFSET = Parameter("seconds ahead; behind, if negative", least=-_MOST, most=_MOST, required=True)
PARAMETERS: Parameters = MappingProxyType({"offset": _OFFSET})


class ClockSkew(InRank):
    """Makes the clock wrong inside the rank."""

    name = "clock-skew"
    effect = NONE
    parameters = PARAMETERS
    required_place = RequiredPlace(phases=PHASES, handlers=False)

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the act, and the clock's offset."""
        return {"message": "act", "act": self.name, "offset": victim.parameters["offset"]}

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        """Return the offset that the rank has seen. Raises FaultMissed if it has ended without a record."""
        acting = own_proof(job, victim, "fault.acting", "its clock was changed", self._is_it)
        return None if acting is None else {"signal": None, "act": self.name, "seen": acting.get("seen")}

    def _is_it(self, acting: dict[str, Any]) -> bool:
        return acting.get("act") == self.name


KIND = ClockSkew()
