"""What mechanisms have in common that repair a job within its launch."""

from __future__ import annotations

ONLINE_REPAIR = "online repair"
"""What is said to have acted where processes were stopped, cleaned and repaired."""

REPAIR = frozenset({"DEVICE_STOP", "DEVICE_CLEAN", "REPAIR", "ROLLBACK", "NOTIFY_NORMAL"})
"""What the SDK's controller asks of the ranks in such a repair, as its log names it."""
