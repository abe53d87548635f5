"""``link-error``: makes the device report a broken link to another one (ACL 507056).

MindSpore 2.10 reports an unknown error to the SDK, so the rank counts as lost. ``link`` is the silent fault.

On Ascend: the link between two devices breaks.
"""

from __future__ import annotations

from chaos.faults.device_errors.raised import RaisedError
from chaos.plan.job_effect import UNKNOWN

KIND = RaisedError(
    "link-error",
    UNKNOWN,
    "Call ascend api <aclrtSynchronizeStreamWithTimeout> failed, error code [507056].",
)
