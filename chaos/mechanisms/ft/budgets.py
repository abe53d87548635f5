"""The time budgets of a replica group's loss and return.

Measured with torchft 0.2 and PyTorch 2.13 on two cores, 3 groups, heartbeat timeout 5 s: the others stand still for 4.8
to 5.0 s, a new process asks for its quorum 5 to 8 s after its start, and has its state 0.1 s later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from chaos.mechanisms.ft.plan import longest_stand_still, stops
from chaos.mechanisms.restart import HARDWARE
from chaos.plan.budgets import Profile
from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import Scenario

_FAST = Profile(
    total=180.0,
    phases={"stand-still": 15.0, "relaunch": 5.0, "import": 60.0, "heal": 30.0, "first step": 30.0},
)

_VENDOR = Profile(
    total=600.0,
    phases={"stand-still": 30.0, "relaunch": 30.0, "import": 180.0, "heal": 120.0, "first step": 60.0},
)

BUDGETS: Mapping[str, Profile] = MappingProxyType({"fast": _FAST, "vendor": _VENDOR, "hardware": HARDWARE})


def longer(scenario: Scenario, faults: Sequence[Scheduled]) -> Mapping[str, float]:
    """Return by how many seconds the others stand still longer, and a stopped group is away longer.

    A lost group is first missed by its heartbeats.
    """
    away = max((float(fault.fault.parameters["seconds"]) for fault in faults if stops(fault)), default=0.0)
    return {"stand-still": longest_stand_still(scenario, faults), **({"relaunch": away} if away else {})}
