"""The time budgets of a pause beside its requested length, which is the scenario's choice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from chaos.plan.budgets import Profile

_FAST = Profile(total=math.inf, phases={"stop": 10.0, "first step": 15.0})
"""Short waits: the ranks finish their current step."""

_VENDOR = Profile(total=math.inf, phases={"stop": 15.0, "first step": 20.0})
"""The controller looks for an order every 2 s and then collects the states for 5 s."""

_HARDWARE = Profile(total=math.inf, phases={})
"""The vendor states no figure."""

BUDGETS: Mapping[str, Profile] = MappingProxyType({"fast": _FAST, "vendor": _VENDOR, "hardware": _HARDWARE})
