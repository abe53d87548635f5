"""``suspect-remote``: makes the device of a rank suspect another one of a memory error that shows in a remote access.

The text is MindSpore's for ACL error 507057, raised at the framework's seam, in the accessing rank, while the
gradients are exchanged. MindSpore reports it to the SDK like a failed communication, so HCCE answers; no rank's memory
is lost here.

On Ascend: a rank reads damaged memory of its neighbour's device; no tool makes one.
"""

from __future__ import annotations

from chaos.faults.device_errors.raised import RaisedError
from chaos.plan.job_effect import COMMUNICATION

KIND = RaisedError("suspect-remote", COMMUNICATION, "SuspectRemoteError error occurs when execute, error_code=507057.")
