"""Rows of many nights, with the noise of real machines, for tests of trends and gates."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

from chaos.trends.row import PhaseTime, RunRow

PHASES: Mapping[str, float] = {
    "detection": 2.1,
    "stop": 0.8,
    "save": 5.5,
    "exit": 1.4,
    "relaunch": 21.0,
    "load": 7.3,
    "compile": 11.0,
    "first step": 3.2,
}
"""Seconds of each phase on a good night."""

SCENARIOS = ("kill-rank", "kill-node", "uce-repair")

FIRST = datetime(2025, 1, 1, 1, 17, tzinfo=timezone.utc)


def night(number: int) -> datetime:
    """When night ``number`` began."""
    return FIRST + timedelta(days=number)


def a_row(
    number: int = 0,
    scenario: str = "kill-rank",
    phases: Mapping[str, float] = PHASES,
    **changes: object,
) -> RunRow:
    """A passing run of one night."""
    times = tuple(PhaseTime(name, seconds, 60.0) for name, seconds in phases.items())
    begun = night(number)
    values: dict[str, object] = {
        "run": f"{scenario}-{begun:%Y%m%d-%H%M%S}-{number:04x}",
        "verdict": "pass",
        "started": begun.isoformat(),
        "ended": (begun + timedelta(minutes=2)).isoformat(),
        "seconds": 120.0,
        "working": 80.0,
        "mechanism": "TTP",
        "total": sum(phases.values()),
        "rollback": 0.0,
        "ranks": 4,
        "code": "c0de",
        "chaos": "0.1.0",
        "job": "10b",
        "mindspore": "2.8.0",
        "sdk": "standin",
        "platform": "local",
        "host": "runner",
        "load": 0.5,
        "file": f"scenarios/{scenario}.yaml",
        "line": 12,
        "phases": times,
    }
    return RunRow(**{"scenario": scenario, "cell": "", **values, **changes})  # type: ignore[arg-type]


def nights(
    seed: int,
    number: int = 500,
    *,
    slow_from: int | None = None,
    slow: str = "load",
    by: float = 0.15,
    scenario: str = "kill-rank",
    noise: float = 0.05,
    busy_nights: float = 0.0,
    tails: int | None = None,
) -> list[RunRow]:
    """Rows of ``number`` nights of all scenarios. From night ``slow_from`` on one phase of ``scenario`` is slower.

    The noise of each phase is lognormal, and one time in fifty is half as long again. On a share of the nights,
    ``busy_nights``, the machine is busy: all phases take up to a fifth longer. With ``tails`` the logarithm of the
    noise has Student's distribution with so many degrees of freedom, whose tails are heavier.
    """
    dice = random.Random(seed)
    rows = []
    for index in range(number):
        busy = 1 + dice.random() / 5 if dice.random() < busy_nights else 1.0
        for name in SCENARIOS:
            times = {
                phase: typical
                * busy
                * math.exp(noise * _normal_or_student(dice, tails))
                * (1.5 if dice.random() < 0.02 else 1.0)
                for phase, typical in PHASES.items()
            }
            if slow_from is not None and index >= slow_from and name == scenario:
                times[slow] *= 1 + by
            rows.append(a_row(index, name, times))
    return rows


def _normal_or_student(dice: random.Random, freedom: int | None) -> float:
    if freedom is None:
        return dice.gauss(0, 1)
    return dice.gauss(0, 1) / math.sqrt(dice.gammavariate(freedom / 2, 2) / freedom)
