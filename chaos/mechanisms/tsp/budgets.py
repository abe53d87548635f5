"""What a pause may take beside the time that it is asked for: how long it lasts is the scenario's choice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from chaos.plan.budgets import Profile

_FAST = Profile(total=math.inf, phases={"stop": 10.0, "first step": 15.0})
"""Short waits: the ranks finish the step that they are in."""

_VENDOR = Profile(total=math.inf, phases={"stop": 15.0, "first step": 20.0})
"""The controller looks for an order every 2 s and then collects the states for 5 s."""

_HARDWARE = Profile(total=math.inf, phases={})
"""The vendor states nothing of it."""

BUDGETS: Mapping[str, Profile] = MappingProxyType({"fast": _FAST, "vendor": _VENDOR, "hardware": _HARDWARE})
