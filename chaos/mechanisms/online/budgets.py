"""The time budgets of an online repair."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from chaos.plan.budgets import Profile

_FAST = Profile(total=20.0, phases={"detection": 1.0, "stop": 5.0, "repair": 5.0, "first step": 15.0})
"""Short waits. Nothing waits for a heartbeat, since the rank reports its error itself. The total is below the sum of
the phases: each may be slow on two busy cores, not all of them."""

_VENDOR = Profile(total=30.0, phases={"detection": 6.0, "stop": 10.0, "repair": 10.0, "first step": 20.0})
"""Total: the vendor states under 30 s for an online repair by UCE, and HCCE does less. Detection: an error that is
reported is seen at the next check, every 2 s, and once more; 2 s were observed. The limits of the SDK's own actions
(30 s for a pre-lock, 180 s for others) would not fit into that total."""

_HARDWARE = Profile(total=30.0, phases={}, ecc=60.0)
"""The vendor states an online repair by UCE in under 30 s, of an HBM multi-bit ECC error in 1 min (MindCluster,
resumable training); HCCE does less."""

BUDGETS: Mapping[str, Profile] = MappingProxyType({"fast": _FAST, "vendor": _VENDOR, "hardware": _HARDWARE})
