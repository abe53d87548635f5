"""The time budgets of the rescheduling of processes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from chaos.plan.budgets import Profile

_FAST = Profile(
    total=150.0,
    phases={
        "detection": 2.0,
        "stop": 10.0,
        "restart": 60.0,
        "rebuild": 60.0,
        "repair": 15.0,
        "first step": 30.0,
    },
    silence=8.0,
    given_up=75.0,
    replacement=40.0,
)
"""A new process imports MindSpore and builds its network while others use the cores too. In a failed attempt the SDK
waits 40 s for a new process."""

_VENDOR = Profile(
    total=240.0,
    phases={
        "detection": 15.0,
        "stop": 40.0,
        "restart": 60.0,
        "rebuild": 60.0,
        "repair": 30.0,
        "first step": 60.0,
    },
    silence=15.0,
    given_up=660.0,
    replacement=600.0,
)
"""12 to 13 s were observed from the death to the next step. In a failed attempt the SDK waits 10 minutes."""

_HARDWARE = Profile(total=180.0, phases={}, given_up=660.0, replacement=600.0)
"""The vendor states process rescheduling in 3 minutes (MindCluster, resumable training), and nothing for its phases.
In a failed attempt the SDK waits 10 minutes for a new process."""

BUDGETS: Mapping[str, Profile] = MappingProxyType({"fast": _FAST, "vendor": _VENDOR, "hardware": _HARDWARE})
