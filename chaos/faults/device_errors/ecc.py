"""``ecc``: raises an HBM multi-bit ECC error (ACL 507054), a memory error with the time of its event.

MindSpore compares this time with those of the optimizer update: an error during the update cannot be repaired.
``strategy`` is as in ``uce``.

On Ascend: an HBM double-bit error, event 0x80e01801.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from chaos.faults.device_errors.uce import DeviceMemoryError
from chaos.faults.kind import Victim
from chaos.plan.job_effect import TIMED

_EVENT = "0x80e01801"
"""The fault code of the device plugin for an HBM double-bit error."""


@dataclass(frozen=True)
class TimedMemoryError(DeviceMemoryError):
    """A memory error whose text ends in the time of the event, in microseconds of the host's monotonic clock."""

    def order(self, victim: Victim) -> dict[str, Any]:
        """Return the error's text with its device and time."""
        event = f"HBM MULTI BIT ECC, Uncorrectable ECC, device_id={victim.rank}, event_id={_EVENT}"
        order = super().order(victim)
        return {**order, "text": f"{order['text']} {event}, time us={time.monotonic_ns() // 1000}."}


KIND = TimedMemoryError("ecc", TIMED, "UCEError error occurs when execute, error_code=507054.")
