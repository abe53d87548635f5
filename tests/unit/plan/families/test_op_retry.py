"""Operator-level retry: read from the job's environment, stated in the plan, and told apart from HCCE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.plan.conftest import Planner

HCCE = {"kind": "hcce", "target": {"rank": 1}, "trigger": {"step": 5, "phase": "allreduce.enter"}}


def job(value: str | None) -> dict[str, Any]:
    environment = {} if value is None else {"HCCL_OP_RETRY_ENABLE": value}
    return {"protection": ("HCCE",), "environment": environment}


def test_what_is_on_is_stated_and_the_error_is_one_that_the_retry_has_given_up(plan: Planner) -> None:
    found = plan(HCCE, job=job("L0:0, L1:1, L2:1"))
    assert found.response.mechanism == "HCCE"
    text = " ".join(found.explanation.reasons)
    assert "Operator-level retry is on for L1, L2 (HCCL_OP_RETRY_ENABLE)" in text
    assert "is error 507904: HCCL has given up its operator" in text


@pytest.mark.parametrize("value", [None, "L0:0,L1:0,L2:0"])
def test_what_is_off_is_stated(plan: Planner, value: str | None) -> None:
    text = " ".join(plan(HCCE, job=job(value)).explanation.reasons)
    assert "Operator-level retry is off (HCCL_OP_RETRY_ENABLE)" in text


def test_without_the_variable_and_without_an_error_nothing_is_said(plan: Planner) -> None:
    assert "perator-level" not in " ".join(plan(job=job(None)).explanation.reasons)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("L0:0, L1:2", "level L1 is switched by 0 or 1, not by '2'"),
        ("L0:0, L3:1", "there is no level L3, only L0, L1, L2"),
        ("L0:0, L0:1", "level L0 is named twice"),
        ("L0=1", "'L0=1' is not a level and its switch"),
        ("", "'' is not a level and its switch"),
        ("true", "'true' is not a level and its switch"),
    ],
)
def test_a_value_that_hccl_would_not_understand_is_refused(plan: Planner, value: str, said: str) -> None:
    text = plan.refused(HCCE, job=job(value))
    assert said in text
    assert 'write each level once with 0 or 1, such as "L0:0, L1:1, L2:1"' in text


def test_the_place_of_the_value_is_named(plan: Planner) -> None:
    plan.lines = {"job.environment.HCCL_OP_RETRY_ENABLE": 9}
    assert "example.yaml:9:3" in plan.refused(HCCE, job=job("L1"))
