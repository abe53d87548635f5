"""``uce``: raises an uncorrectable error in the device's memory (ACL 507053).

``strategy`` is the device's classification. ``high level`` (default): weights and optimizer state of the rank are lost
(in a rehearsal NaN). ``low level``: the memory held nothing needed.

On Ascend: an HBM error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chaos.faults.device_errors.raised import RaisedError
from chaos.faults.kind import Victim
from chaos.plan.job_effect import MEMORY

STRATEGIES = {"high level": "RS_UCE_HIGHLEVEL", "low level": "RS_UCE_LOWLEVEL"}
"""Values of the parameter ``strategy``, and MindSpore's names for them."""


@dataclass(frozen=True)
class DeviceMemoryError(RaisedError):
    """An error that takes memory from its rank."""

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the error's text, and the device's later report on the memory."""
        strategy = STRATEGIES[victim.parameters.get("strategy", "high level")]
        return {**super().order(victim), "strategy": strategy}


KIND = DeviceMemoryError("uce", MEMORY, "UCEError error occurs when execute, error_code=507053.")
