"""The time budgets of a restart of all ranks by torchrun.

Measured with PyTorch 2.13 on two cores, 4 ranks: torchrun looks at its ranks every ``--monitor-interval``; survivors
end by SIGTERM 0.2 s after a death; the interpreter, ``import torch`` and the process group take 6 to 12 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from chaos.mechanisms.elastic.plan import SHUTDOWN, awaits_timeout, group_timeout, is_silent, leaves_well
from chaos.mechanisms.restart import HARDWARE
from chaos.plan.budgets import Profile
from chaos.plan.schedule import Scheduled
from chaos.scenario.models.scenario import Scenario

INTERPRETER_END = 15.0
"""Seconds that a rank may take from an uncaught exception to its end: Python ends its threads and modules first, which
takes 3 to 5 s on two cores."""

_FAST = Profile(
    total=180.0,
    phases={
        "detection": 1.0,
        "stop": 5.0,
        "relaunch": 5.0,
        "import": 60.0,
        "load": 60.0,
        "first step": 30.0,
        "caught up": 60.0,
    },
)

_VENDOR = Profile(
    total=600.0,
    phases={
        "detection": 10.0,
        "stop": 30.0,
        "relaunch": 30.0,
        "import": 180.0,
        "load": 180.0,
        "first step": 60.0,
        "caught up": 120.0,
    },
)

BUDGETS: Mapping[str, Profile] = MappingProxyType({"fast": _FAST, "vendor": _VENDOR, "hardware": HARDWARE})


def longer(scenario: Scenario, faults: Sequence[Scheduled]) -> Mapping[str, float]:
    """Return by how many seconds the faults of a restart make its phases longer.

    An exception ends its process only when Python has ended. Ranks that are silent, or leave with code 0, are noticed
    when others end by an exception. A stopped rank does not end by SIGTERM.
    """
    detection, stop = scenario.job.torchrun.monitor_interval, 0.0
    if any(fault.raised or is_silent(fault) or leaves_well(fault) for fault in faults):
        detection += INTERPRETER_END
    if any(awaits_timeout(scenario, fault) for fault in faults):
        detection += group_timeout(scenario)
    if any(fault.effect.suspends for fault in faults):
        stop += SHUTDOWN
    return {"detection": detection, "stop": stop}
