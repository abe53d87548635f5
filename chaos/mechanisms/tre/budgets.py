"""The time budgets of a rollback. It waits for no clock: the norm is checked when the step ends."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from chaos.plan.budgets import Profile

_FAST = Profile(total=40.0, phases={"detection": 5.0, "load": 10.0, "first step": 15.0, "caught up": 30.0})
"""The time is loading and training."""

_VENDOR = Profile(total=180.0, phases={"detection": 10.0, "load": 60.0, "first step": 60.0, "caught up": 120.0})
"""Total: the vendor's figure for the slower of the recoveries without a job restart, under 3 minutes."""

_HARDWARE = Profile(total=180.0, phases={})
"""The vendor's figure for a process (MindCluster, resumable training: process rescheduling 3 min) applies."""

BUDGETS: Mapping[str, Profile] = MappingProxyType({"fast": _FAST, "vendor": _VENDOR, "hardware": _HARDWARE})
