"""``uce``: an uncorrectable error in the device's memory.

The text is that of MindSpore for ACL error 507053 (device memory). It is raised at the framework's seam: what MindSpore
does from there on is genuine.
"""

from __future__ import annotations

from chaos.faults.raised import RaisedError

KIND = RaisedError("uce", "memory error", "UCEError error occurs when execute, error_code=507053.")
