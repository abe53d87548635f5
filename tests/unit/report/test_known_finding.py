"""A known finding explains the checks that it names, with the SDK with which it holds, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.report.known_finding import explains, holds

STAND_IN = [{"part": "mindio_ttp, timings fast", "layer": "SDK"}]
VENDOR: list[dict[str, str]] = []
PLAN: dict[str, Any] = {"finding": "F-1", "failing": ["loss"], "failing_with_vendor": ["recovery"]}


@pytest.mark.parametrize(
    ("plan", "simulated", "failed", "explained"),
    [
        (PLAN, STAND_IN, {"loss"}, True),
        (PLAN, STAND_IN, {"loss", "resume"}, False),
        (PLAN, STAND_IN, {"loss", "recovery"}, False),
        (PLAN, VENDOR, {"loss", "recovery"}, True),
        (PLAN, STAND_IN, set(), False),
        ({**PLAN, "finding_sdk": "vendor"}, STAND_IN, {"loss"}, False),
        ({**PLAN, "finding_sdk": "vendor"}, VENDOR, {"loss"}, True),
        ({**PLAN, "finding": None}, STAND_IN, {"loss"}, False),
        ({"finding": "F-1", "failing": "loss"}, STAND_IN, {"loss"}, False),
        ({"finding": "F-1"}, STAND_IN, {"loss"}, False),
    ],
)
def test_a_finding_explains_the_checks_that_it_names(
    plan: dict[str, Any], simulated: list[dict[str, str]], failed: set[str], explained: bool
) -> None:
    assert explains(plan, simulated, failed) is explained


def test_a_finding_of_the_other_sdk_does_not_hold() -> None:
    assert holds(PLAN, STAND_IN) and holds({**PLAN, "finding_sdk": "standin"}, STAND_IN)
    assert not holds({**PLAN, "finding_sdk": "standin"}, VENDOR)
