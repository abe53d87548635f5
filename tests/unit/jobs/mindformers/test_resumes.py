"""What makes MindFormers go on from another checkpoint than the newest that is recorded: refused where it matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.jobs.mindformers.conftest import Room

NONE = "protection: []"
WATCH = "monitor_config:\n  monitor_on: True\n  check_for_global_norm: True\n"
LATEST = "resume_by_last_timestamp_ckpt: True\n"
HEALTHY = "use_checkpoint_health_monitor: True\n"
THRESHOLD = "monitor_config:\n  health_checkpoint: {embedding_local_norm_threshold: 0.5}\n"
STALE = """\
  - kind: damage-record
    parameters: {how: stale}
    target: {rank: 1}
    trigger: {after: power}
expect: {mechanism: none}
"""


def resuming(room: Room, protection: str = NONE) -> Room:
    """All ranks are killed behind two checkpoints, and the record of one is stale."""
    room.change_scenario("protection: [TTP]", protection)
    room.change_scenario(
        "kind: kill\n    target: {rank: 1}", "kind: kill\n    id: power\n    target: {ranks: [0, 1, 2, 3]}"
    )
    room.change_scenario("step: 6", "step: 10")
    room.scenario += STALE
    return room


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (LATEST, "each rank then goes on from its own file with the latest time, whatever is recorded"),
        (HEALTHY, "a resume then goes on from the newest checkpoint that MindFormers has marked as healthy"),
    ],
)
def test_another_choice_than_that_of_the_records_is_refused_where_the_job_is_resumed(
    room: Room, key: str, words: str
) -> None:
    resuming(room).checkout("1.8.0")
    assert room.plan().resume.resume_step == 5
    room.configuration += key
    message = room.refused()
    assert message.startswith(f"job.yaml:24:1: {words}")
    assert f"\n    {key}" in message
    room.scenario = room.scenario.partition("faults:")[0]
    room.plan()  # nobody resumes


def test_files_by_their_times_count_only_where_no_strategy_chooses(room: Room) -> None:
    room.configuration += LATEST
    assert room.plan().resume.resumes
    room.configuration += "remove_redundancy: True\n"
    assert "whatever is recorded" in room.refused()
    room.configuration += "use_legacy_format: False\n"
    assert room.checkout("2.1.0").plan().resume.resumes


def test_health_of_checkpoints_is_known_from_1_6_on(room: Room) -> None:
    resuming(room).configuration += HEALTHY
    room.checkout("1.5.0").plan()
    assert "marked as healthy" in room.checkout("1.6.0").refused()


@pytest.mark.parametrize(
    ("version", "layout", "key", "refused"),
    [
        ("2.1.0", "use_legacy_format: False\n", THRESHOLD, True),
        ("2.1.0", "use_legacy_format: False\n", HEALTHY, True),
        ("2.1.0", "", THRESHOLD, False),  # the legacy layout has no such threshold
        ("1.8.0", "use_legacy_format: False\n", HEALTHY, False),  # nor has the new one of 1.8
    ],
)
def test_in_the_new_layout_of_2_1_a_threshold_chooses_what_is_gone_on_from(
    room: Room, version: str, layout: str, key: str, refused: bool
) -> None:
    room.checkout(version).configuration += layout + key
    if refused:
        assert (
            "a resume then goes on from the newest checkpoint that MindFormers has marked as healthy" in room.refused()
        )
    else:
        assert room.plan().resume.resumes


@pytest.mark.parametrize(("layout", "refused"), [("use_legacy_format: False\n", True), ("", False)])
def test_a_rollback_to_a_healthy_checkpoint_is_refused_whatever_the_faults(
    room: Room, layout: str, refused: bool
) -> None:
    room.scenario = room.scenario.partition("faults:")[0].replace("[TTP]", "[TRE]")
    room.checkout("2.1.0").configuration += layout + WATCH
    room.plan()
    room.configuration += "  health_checkpoint: {embedding_local_norm_threshold: 0.5}\n"
    if refused:
        assert "the rollback of TRE (scenario.yaml:8) then goes on from the newest checkpoint" in room.refused()
    else:
        room.plan()
