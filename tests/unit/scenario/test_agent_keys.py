"""With a cluster agent, mechanisms follow from strategies and strategies from mechanisms: MindCluster's table."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from pydantic import ValidationError

from chaos.jobs.msrun import tft_switches
from chaos.scenario.models.job import Job, allowed, injected

FIVE = ("retry", "recover-in-place", "recover", "dump", "exit")


def job(**written: Any) -> Job:
    return Job.model_validate({"steps": 3, **written})


def injection_by_hand(strategies: tuple[str, ...]) -> set[str]:
    """The table of the cluster's documents, row by row: written apart from the code under test."""
    environment: set[str] = set()
    for strategy in strategies:
        if strategy == "retry":
            environment |= {"UCE:1", "HCCE:1"}
        elif strategy == "dump":
            environment |= {"TTP:1"}
        else:
            assert strategy in ("recover", "recover-in-place", "exit")
            environment |= {"ARF:1"}
    return environment


@pytest.mark.parametrize("strategies", [subset for size in range(1, 6) for subset in combinations(FIVE, size)])
def test_every_set_of_strategies_switches_on_what_the_cluster_would(strategies: tuple[str, ...]) -> None:
    found = job(agent=True, strategies=list(strategies))
    assert set(tft_switches(found.protection).strip("{}").split(",")) == injection_by_hand(strategies)
    assert (found.strategies, found.controller) == (strategies, "outside")


def test_pod_rescheduling_is_switched_on_by_its_own_name() -> None:
    found = job(agent=True, protection=["RSC"])
    assert (tft_switches(found.protection), found.strategies) == ("{RSC:1}", ("exit",))


@pytest.mark.parametrize(
    ("protection", "strategies"),
    [
        (["TTP"], ("dump", "exit")),
        (["ARF"], ("recover", "dump", "exit")),
        (["UCE"], ("retry", "dump", "exit")),
        (["HCCE"], ("retry", "exit")),
        (["UCE", "ARF"], ("retry", "recover", "dump", "exit")),
    ],
)
def test_strategies_follow_from_the_mechanisms(protection: list[str], strategies: tuple[str, ...]) -> None:
    assert job(agent=True, protection=protection).strategies == strategies == allowed(protection)


def test_what_is_written_is_kept() -> None:
    found = job(agent=True, protection=["UCE"], strategies=["dump"], controller="outside")
    assert (found.protection, found.strategies) == (("UCE",), ("dump",))


def test_without_an_agent_nothing_is_filled_in() -> None:
    found = job(protection=["TTP"])
    assert (found.strategies, found.controller) == ((), "rank 0")


def test_an_unknown_strategy_is_an_error() -> None:
    with pytest.raises(ValidationError):
        job(agent=True, strategies=["reboot"])


def test_nothing_is_switched_on_twice() -> None:
    assert injected(("exit", "recover", "retry")) == ("UCE", "HCCE", "ARF")
