"""What the vendor asks of a configuration and nobody refuses is a reason of the plan, with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chaos.jobs.mindformers.job import KIND
from chaos.jobs.mindformers.reader import examine

if TYPE_CHECKING:
    from tests.unit.jobs.mindformers.conftest import Room

WATCHDOG = "HCCL's watchdog"
CONTEXT = "context:\n"


def remarks(room: Room) -> list[str]:
    return [reason for reason in room.plan().explanation.reasons if WATCHDOG in reason]


@pytest.fixture
def online(room: Room) -> Room:
    """A job with a memory error that is repaired online."""
    return (
        room.change_scenario("[TTP]", "[TTP, UCE]")
        .change_scenario("kind: kill", "kind: uce")
        .change_scenario("phase: step.end", "phase: step.begin")
    )


def test_online_recovery_with_the_watchdog_of_hccl_on_is_a_reason_of_the_plan(online: Room) -> None:
    (reason,) = remarks(online)
    assert "UCE (scenario.yaml:7) needs HCCL's watchdog off: context.ascend_config.hccl_watchdog is not set" in reason
    line = 1 + online.configuration.splitlines().index("context:")
    assert f"job.yaml:{line}), and" in reason


def test_a_watchdog_that_is_written_on_is_told_with_its_own_line(online: Room) -> None:
    online.change(CONTEXT, f"{CONTEXT}  ascend_config: {{hccl_watchdog: True}}\n")
    (reason,) = remarks(online)
    line = 2 + online.configuration.splitlines().index("context:")
    assert "hccl_watchdog is True" in reason
    assert f"job.yaml:{line})" in reason


def test_a_watchdog_that_is_off_is_no_reason(online: Room) -> None:
    assert remarks(online.change(CONTEXT, f"{CONTEXT}  ascend_config: {{hccl_watchdog: False}}\n")) == []


def test_without_online_recovery_the_watchdog_is_no_reason(room: Room) -> None:
    assert remarks(room) == []


@pytest.mark.parametrize(("protection", "count"), [("TTP, UCE", 1), ("TTP, HCCE", 1), ("TTP, UCE, ARF", 0), ("TTP", 0)])
def test_with_arf_mindspore_turns_the_watchdog_off(room: Room, protection: str, count: int) -> None:
    room.change_scenario("[TTP]", f"[{protection}]")
    found = examine(room.cell(), room.path / "scenario.yaml", KIND.traits).remarks
    assert len(found) == count
