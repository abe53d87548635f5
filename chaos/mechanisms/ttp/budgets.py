"""The time budgets of an end-of-life checkpoint, and of the job's start after it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from chaos.mechanisms.restart import HARDWARE
from chaos.plan.budgets import Profile

_FAST = Profile(
    total=180.0,
    phases={
        "detection": 2.0,
        "stop": 5.0,
        "save": 15.0,
        "exit": 10.0,
        "relaunch": 60.0,
        "load": 60.0,
        "compile": 60.0,
        "first step": 30.0,
        "caught up": 60.0,
    },
    silence=8.0,
    unanswered=5.0,
)
"""The SDK's waits are short, the rest is the time of a rehearsal on two busy cores. A broken connection is believed
at once, silence only after 5 s."""

_VENDOR = Profile(
    total=600.0,
    phases={
        "detection": 15.0,
        "stop": 40.0,
        "save": 180.0,
        "exit": 30.0,
        "relaunch": 60.0,
        "load": 60.0,
        "compile": 180.0,
        "first step": 60.0,
        "caught up": 120.0,
    },
    silence=15.0,
    agent=30.0,
)
"""Detection: a heartbeat is lost after 8 s, checked every 2 s and once more. Stop: states are collected for 5 s and a
pre-lock takes up to 30 s. Save: an action has 180 s. Exit, with an agent: its answer is waited for 30 s
(MINDIO_WAIT_MINDX_TIME). In all: the vendor has a job started again in under 10 minutes."""

BUDGETS: Mapping[str, Profile] = MappingProxyType({"fast": _FAST, "vendor": _VENDOR, "hardware": HARDWARE})
