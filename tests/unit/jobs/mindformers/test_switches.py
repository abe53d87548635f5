"""MS_ENABLE_TFT: what is on, and every spelling that is not read as it looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chaos.jobs.mindformers.switches import mechanisms, misread

if TYPE_CHECKING:
    from tests.unit.jobs.mindformers.conftest import Room


@pytest.mark.parametrize(
    ("value", "on"),
    [
        ("{TTP:1,UCE:1}", ("TTP", "UCE")),
        ("TTP:1", ("TTP",)),
        ("{TTP:0,ARF:1}", ("ARF",)),
        ("{TTP: 1}", ()),
        ("{UCE:1 TTP:1}", ("TTP", "UCE")),
        ("", ()),
    ],
)
def test_a_mechanism_is_on_where_its_switch_is_in_the_text(value: str, on: tuple[str, ...]) -> None:
    assert mechanisms(value) == on


@pytest.mark.parametrize("value", ["", "{}", "{TTP:1,UCE:1}", "{TTP:1, UCE:1 }", "TTP:1,", "{TTP:0,TRE:1}", "{TTP: 0}"])
def test_what_everybody_reads_alike_is_left_alone(value: str) -> None:
    assert list(misread(value)) == []


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{TTP: 1}", "'TTP: 1' has a blank at the colon: MindFormers and MindSpore look for 'TTP:1' and find it not"),
        ("{TTP :1}", "has a blank at the colon"),
        ("{UCE:1 TTP:1}", "'UCE:1 TTP:1' lacks a comma"),
        ("{TRE}", "'TRE' has no value, at which MindSpore ends while it is imported"),
        ("{TTP:1, ,UCE:1}", "' ' has no value"),
        ("{TPP:1}", "there is no mechanism 'TPP'"),
        ("{ttp:1}", "there is no mechanism 'ttp'"),
        ("{TTP:10}", "'TTP:10' switches TTP on"),
        ("{TTP:true}", "'TTP:true' does not switch TTP on"),
        ("{TRE:2}", "TRE:2 (rollback to a snapshot) is not planned"),
        ("{ATO:1}", "ATO is not planned"),
    ],
)
def test_what_is_not_read_as_it_looks_is_told(value: str, said: str) -> None:
    (found,) = misread(value)
    assert said in found[0]


def test_the_line_of_the_variable_is_named(room: Room) -> None:
    room.change_scenario("protection: [TTP]", 'environment: {MS_ENABLE_TFT: "{TTP: 1}"}')
    assert "scenario.yaml:7:17: MS_ENABLE_TFT: 'TTP: 1' has a blank at the colon" in room.refused()


def test_a_sound_variable_says_what_is_on(room: Room) -> None:
    room.change_scenario("protection: [TTP]", 'environment: {MS_ENABLE_TFT: "{TTP:1,UCE:1}"}')
    plan = room.plan()
    assert plan.protection == ("TTP", "UCE")
    assert plan.configured["job.protection"] == "scenario.yaml:7: MS_ENABLE_TFT: {TTP:1,UCE:1}"


def test_a_variable_and_a_list_that_disagree_are_refused(room: Room) -> None:
    room.change_scenario("protection: [TTP]", 'protection: [TTP]\n  environment: {MS_ENABLE_TFT: "{ARF:1}"}')
    assert "job.protection is [TTP] here, but scenario.yaml:8: MS_ENABLE_TFT: {ARF:1}" in room.refused()
