"""``link-error``: makes the device report that the link to another one is broken, ACL error 507056.

MindSpore 2.10 does not classify this error (``GetErrorType``) and reports an unknown one to the SDK, so the rank
counts as lost. The error is raised at the framework's seam. With ``link`` the link is silent, and the collective
waits.

On Ascend: the link between two devices breaks while they exchange data; no tool makes one.
"""

from __future__ import annotations

from chaos.faults.device_errors.raised import RaisedError
from chaos.plan.job_effect import UNKNOWN

KIND = RaisedError(
    "link-error",
    UNKNOWN,
    "Call ascend api <aclrtSynchronizeStreamWithTimeout> failed, error code [507056].",
)
