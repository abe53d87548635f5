"""``suspect-remote``: makes a rank's device suspect another of a memory error (ACL 507057), while gradients are
exchanged.

MindSpore reports a failed communication to the SDK, so HCCE answers. No rank's memory is lost.

On Ascend: a rank reads damaged memory of its neighbour's device.
"""

from __future__ import annotations

from chaos.faults.device_errors.raised import RaisedError
from chaos.plan.job_effect import COMMUNICATION

KIND = RaisedError("suspect-remote", COMMUNICATION, "SuspectRemoteError error occurs when execute, error_code=507057.")
