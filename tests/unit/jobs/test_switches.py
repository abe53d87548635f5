"""MS_ENABLE_TFT: what is on, and every spelling that is not read as it looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.jobs.switches import mechanisms, misread
from chaos.plan.model import Plan
from chaos.plan.rules.constraints import never_registered
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from tests.unit.jobs.mindformers.conftest import CONFIGURATION


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
        (
            "{TTP: 1}",
            "'TTP: 1' has a blank at the colon: MindFormers and MindSpore look for 'TTP:1' and do not find it",
        ),
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


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{TTP:1,TTP:0}", "TTP is switched 2 times: MindSpore's parser takes the last one"),
        ("{ARF:1,TTP:0}", "TTP:0 has no effect, since ARF:1 switches TTP on"),
    ],
)
def test_a_switch_that_another_one_takes_back_is_told(value: str, said: str) -> None:
    (found,) = misread(value)
    assert said in found[0]


MINDFORMERS = """\
chaos: 1
name: example
job:
  kind: mindformers
  config: job.yaml
  steps: 12
  PROTECTION
faults:
  - kind: kill
    target: {rank: 1}
    trigger: {step: 6, phase: step.end}
"""
OTHERS = """\
chaos: 1
name: example
job:
  kind: KIND
  steps: 12
  PROTECTION
cluster: {ranks: 4}
faults:
  - kind: kill
    target: {rank: 1}
    trigger: {step: 6, phase: step.end}
"""
KINDS = ("mindformers", "rehearsal", "plain", "mindspore")


class Scenario:
    """A scenario of one kind of job whose key ``protection`` is another text."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.text = MINDFORMERS if kind == "mindformers" else OTHERS.replace("KIND", kind)
        if kind == "mindspore":
            self.text = self.text.replace("  steps", "  script: train.py\n  device: Ascend\n  steps", 1)
            (directory / "train.py").write_text("")
        self.file = directory / "scenario.yaml"
        (directory / "job.yaml").write_text(CONFIGURATION)

    def plan(self, protection: str) -> Plan:
        self.file.write_text(self.text.replace("PROTECTION", protection))
        loaded = load_scenario(self.file, names=known_names())
        return plan_cell(loaded, loaded.cells[0], 1)

    def refused(self, protection: str) -> str:
        with pytest.raises(ScenarioError) as caught:
            self.plan(protection)
        return str(caught.value)

    def line(self, key: str) -> int:
        return next(number for number, line in enumerate(self.file.read_text().splitlines(), 1) if key in line)


@pytest.fixture(params=KINDS)
def scenario(request: pytest.FixtureRequest, tmp_path: Path) -> Scenario:
    return Scenario(request.param, tmp_path)


def test_a_mechanism_of_a_launcher_has_no_switch(scenario: Scenario) -> None:
    said = scenario.refused('environment: {MS_ENABLE_TFT: "{ELASTIC:1}"}')
    assert "there is no mechanism 'ELASTIC'" in said


def test_a_mechanism_of_another_launcher_is_refused(scenario: Scenario) -> None:
    assert "ELASTIC" in scenario.refused("protection: [ELASTIC]")


def test_the_line_of_the_variable_is_named(scenario: Scenario) -> None:
    said = scenario.refused('environment: {MS_ENABLE_TFT: "{TTP: 1}"}')
    assert f"scenario.yaml:{scenario.line('MS_ENABLE')}:17: MS_ENABLE_TFT: 'TTP: 1' has a blank at the colon" in said


@pytest.mark.parametrize("value", ["{UCE:1 TTP:1}", "{TTP:1,UCE}"])
def test_what_mindspore_does_not_read_as_it_looks_is_refused(scenario: Scenario, value: str) -> None:
    said = scenario.refused(f'environment: {{MS_ENABLE_TFT: "{value}"}}')
    assert f"scenario.yaml:{scenario.line('MS_ENABLE')}:17: MS_ENABLE_TFT: 'UCE" in said


def test_a_sound_variable_says_what_is_on(scenario: Scenario) -> None:
    plan = scenario.plan('environment: {MS_ENABLE_TFT: "{TTP:1,UCE:1}"}')
    assert (plan.fault_tolerance.protection, plan.response.mechanism) == (("TTP", "UCE"), "TTP")
    where = f"scenario.yaml:{scenario.line('MS_ENABLE')}: MS_ENABLE_TFT: {{TTP:1,UCE:1}}"
    assert plan.explanation.configured["job.protection"].endswith(where)


def test_a_variable_that_switches_everything_off_is_no_protection(scenario: Scenario) -> None:
    assert scenario.plan('environment: {MS_ENABLE_TFT: "{TTP:0}"}').response.mechanism == "none"


def test_a_variable_and_a_list_that_disagree_are_refused(scenario: Scenario) -> None:
    said = scenario.refused('protection: [TTP]\n  environment: {MS_ENABLE_TFT: "{ARF:1}"}')
    assert "job.protection is [TTP] here, but " in said
    assert f"scenario.yaml:{scenario.line('MS_ENABLE')}: MS_ENABLE_TFT: {{ARF:1}}" in said


def test_a_variable_and_a_list_that_agree_are_one(scenario: Scenario) -> None:
    assert scenario.plan('protection: [TTP]\n  environment: {MS_ENABLE_TFT: "{TTP:1}"}').fault_tolerance.protection == (
        "TTP",
    )


@pytest.mark.parametrize(
    ("name", "follows"),
    [
        ("MS_TFT_IP", "ranks look for the controller of MindIO TFT there"),
        ("MS_TFT_PORT", "the controller of MindIO TFT then uses that port"),
        ("MINDIO_FOR_MINDSPORE", "the harness sets it to 1"),
        ("MINDX_TASK_ID", "no rank starts the controller of MindIO TFT"),
    ],
)
def test_what_is_said_over_the_harness_of_the_controller_is_told(scenario: Scenario, name: str, follows: str) -> None:
    written = f'environment: {{{name}: "7"}}'
    (told,) = [
        reason for reason in scenario.plan(f"protection: [TTP]\n  {written}").explanation.reasons if name in reason
    ]
    assert told.startswith(f"job.environment sets {name} to '7' (line {scenario.line(name)}): {follows}")
    assert not [reason for reason in scenario.plan(written).explanation.reasons if name in reason], (
        "without the SDK there is none"
    )


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('environment: {MS_ENABLE_TFT: "{TRE:1,HCCE:1}"}', "TRE silently switches HCCE off"),
        ("protection: [TRE, TSP]", "TRE silently switches TSP off"),
        ("protection: [TSP, HCCE]", "TSP silently switches HCCE off"),
    ],
)
def test_a_switch_that_silently_turns_another_one_off_is_refused(scenario: Scenario, written: str, said: str) -> None:
    found = scenario.refused(written)
    assert said in found
    assert f"scenario.yaml:{scenario.line(written[:9])}:" in found


def test_with_a_mechanism_that_saves_nothing_is_turned_off() -> None:
    assert never_registered(("TRE", "TSP", "HCCE", "TTP")) is None
    assert never_registered(("TSP", "HCCE", "ARF")) is None
    assert never_registered(("TRE", "RSC")) is None
    assert never_registered(("HCCE",)) is None
