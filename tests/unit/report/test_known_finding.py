"""A known finding explains the checks that it names, with the SDK with which it holds, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.report.known_finding import explains, failed_beyond, holds, signatures

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


def statement(verdict: str, finding: str | None = None, name: str = "hygiene") -> dict[str, Any]:
    data = {} if finding is None else {"finding": finding}
    return {"name": name, "verdict": verdict, "data": data}


SIGNED, PASSED = statement("fail", "F-15"), statement("pass")


@pytest.mark.parametrize(
    ("checks", "found"),
    [
        ([SIGNED, PASSED], ("F-15",)),
        ([SIGNED, SIGNED, statement("fail", "F-99", "run")], ("F-15", "F-99")),
        ([SIGNED, statement("fail")], ()),
        ([SIGNED, statement("unknown")], ()),
        ([SIGNED, statement("unknown", "F-15")], ()),
        ([PASSED, statement("pass", "F-15")], ()),
        ([{"name": "hygiene", "verdict": "fail", "data": {"finding": 15}}], ()),
        ([{"name": "hygiene", "verdict": "fail", "data": None}], ()),
        ([], ()),
    ],
)
def test_a_signature_explains_its_own_statement_and_nothing_beside_it(
    checks: list[dict[str, Any]], found: tuple[str, ...]
) -> None:
    assert signatures(checks) == found


def test_a_check_that_fails_by_more_than_signatures_has_failed() -> None:
    assert failed_beyond([SIGNED, statement("fail"), statement("fail", "F-15", "run"), PASSED]) == ("hygiene",)
    assert failed_beyond([SIGNED]) == ()
