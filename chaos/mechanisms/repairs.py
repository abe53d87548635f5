"""The common ground of mechanisms that repair a job within its launch."""

from __future__ import annotations

ONLINE_REPAIR = "online repair"
"""The name of the actor where processes were stopped, cleaned and repaired."""

REPAIR = frozenset({"DEVICE_STOP", "DEVICE_CLEAN", "REPAIR", "ROLLBACK", "NOTIFY_NORMAL"})
"""The orders of the SDK's controller to the ranks in such a repair, as its log names them."""
