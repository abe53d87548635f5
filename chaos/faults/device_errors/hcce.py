"""``hcce``: makes a communication operator fail, and its retries with it.

The text is MindSpore's for ACL error 507904, raised at the framework's seam.

On Ascend: a broken link or switch, behind HCCL's own retry of the operator.
"""

from __future__ import annotations

from chaos.faults.device_errors.raised import RaisedError
from chaos.plan.job_effect import COMMUNICATION

KIND = RaisedError("hcce", COMMUNICATION, "HCCEError error occurs when execute, error_code=507904.")
