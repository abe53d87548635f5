"""The time budgets of a restart of all ranks by the cluster's agent."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from chaos.mechanisms.restart import HARDWARE
from chaos.plan.budgets import Profile

_FAST = Profile(
    total=150.0,
    phases={
        "detection": 3.0,
        "stop": 5.0,
        "relaunch": 60.0,
        "load": 60.0,
        "compile": 60.0,
        "first step": 30.0,
        "caught up": 60.0,
    },
)
"""The agent looks every 0.1 s; starting again takes as long as after an end-of-life checkpoint."""

_VENDOR = Profile(
    total=600.0,
    phases={
        "detection": 10.0,
        "stop": 30.0,
        "relaunch": 60.0,
        "load": 60.0,
        "compile": 180.0,
        "first step": 60.0,
        "caught up": 120.0,
    },
)
"""The agent looks every 5 s. In all: the vendor has a job rescheduled in under 10 minutes."""

BUDGETS: Mapping[str, Profile] = MappingProxyType({"fast": _FAST, "vendor": _VENDOR, "hardware": HARDWARE})
