"""How many examples hypothesis makes of a promise: few and the same ones every day, more and other ones by night."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

TIMES = int(os.environ.get("CHAOS_EXAMPLES", "1"))
"""So many times the examples of every day, drawn anew by each call."""

_EVERY_DAY = 40


def load_profile() -> None:
    """What holds for every test: a busy machine makes no example wrong, and no fixture holds anything between them."""
    settings.register_profile(
        "chaos",
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
        derandomize=TIMES == 1,
        max_examples=_EVERY_DAY * TIMES,
    )
    settings.load_profile("chaos")


def examples(every_day: int) -> settings:
    """So many examples every day, for a test to which the usual number is too few."""
    return settings(max_examples=every_day * TIMES)
