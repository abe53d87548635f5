"""``hcce``: makes a communication operator fail, and its retries with it (ACL 507904).

On Ascend: a broken link or switch, after HCCL's own retry.
"""

from __future__ import annotations

from chaos.faults.device_errors.raised import RaisedError
from chaos.plan.job_effect import COMMUNICATION

KIND = RaisedError("hcce", COMMUNICATION, "HCCEError error occurs when execute, error_code=507904.")
