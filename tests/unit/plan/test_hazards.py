"""Faults that may disturb more than the job are refused unless the scenario allows them by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.jobs.mindspore import KIND
from chaos.plan.build import build_plan
from chaos.plan.job_effect import DEATH
from chaos.plan.model import Plan
from chaos.plan.planned_kind import PlannedKind
from chaos.plan.render import render
from chaos.plan.rules.hazard import Hazard
from chaos.plan.source import Source
from chaos.run.prepare.needs import needs_of_scenario
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import Cell, LoadedScenario, load_scenario

SCENARIO = """\
chaos: 1
name: x
cluster: {ranks: 2}
job: {kind: mindspore, device: Ascend, script: train.py, steps: 12}
allow: []
faults:
  - id: one
    kind: npu-link-down
    target: {rank: 1}
    trigger: {step: 6}
"""
ALLOWED = SCENARIO.replace("allow: []", "allow: [npu-link-down]")


def loaded(tmp_path: Path, text: str) -> tuple[LoadedScenario, Cell]:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    (tmp_path / "train.py").touch()
    scenario = load_scenario(path, names=known_names())
    return scenario, scenario.cells[0]


def refusal(tmp_path: Path, text: str) -> str:
    with pytest.raises(ScenarioError) as refused:
        plan_cell(*loaded(tmp_path, text))
    return str(refused.value)


@pytest.mark.parametrize(
    ("kind", "risk"), [("npu-link-down", "high"), ("device-reset", "high"), ("node-reboot", "severe")]
)
def test_what_is_not_allowed_is_refused_with_its_line_and_risk(tmp_path: Path, kind: str, risk: str) -> None:
    said = refusal(tmp_path, SCENARIO.replace("npu-link-down", kind))
    assert "x.yaml:8:" in said
    assert f"is of {risk} risk: {kind}" in said
    assert f"allow: [{kind}]" in said


def test_another_name_does_not_allow_it(tmp_path: Path) -> None:
    assert "is of high risk" in refusal(tmp_path, SCENARIO.replace("allow: []", "allow: [device-reset]"))


def test_a_link_that_is_down_within_one_server_needs_no_mechanism(tmp_path: Path) -> None:
    plan = plan_cell(*loaded(tmp_path, ALLOWED))
    assert plan.response.mechanism is None
    assert plan.response.timings == "hardware"
    reasons = " ".join(plan.explanation.reasons)
    assert "is of high risk and allowed by name" in reasons
    assert "80E01801" in reasons and "more than once" not in reasons


def test_a_card_that_is_hit_twice_is_warned_of(tmp_path: Path) -> None:
    again = "  - {id: two, kind: device-reset, target: {rank: 1}, trigger: {step: 9}}\n"
    text = ALLOWED.replace("[npu-link-down]", "[npu-link-down, device-reset]") + again
    plan = plan_cell(*loaded(tmp_path, text))
    assert "hits the card of rank 1 more than once" in " ".join(plan.explanation.reasons)


def test_a_link_that_is_down_does_not_go_down_again(tmp_path: Path) -> None:
    again = "  - {id: two, kind: npu-link-down, target: {ranks: [0, 1]}, trigger: {step: 9}}\n"
    said = refusal(tmp_path, ALLOWED + again)
    assert "fault 'two' cannot hit rank 1: what fault 'one' has done to its card stays" in said


def test_a_name_that_is_no_fault_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"x\.yaml:5:\d+: allow names no fault kind 'npu-link'"):
        loaded(tmp_path, SCENARIO.replace("allow: []", "allow: [npu-link]"))


def test_a_reset_is_planned_as_the_loss_of_the_rank(tmp_path: Path) -> None:
    text = ALLOWED.replace("npu-link-down", "device-reset").replace("steps: 12", "steps: 12, protection: [TTP]")
    plan = plan_cell(*loaded(tmp_path, text))
    assert plan.response.mechanism == "TTP"
    assert plan.checkpoint is not None and plan.checkpoint.step == 5


@pytest.mark.parametrize("phase", ["step.end", "checkpoint.write"])
def test_a_reset_comes_before_the_rank_uses_its_device_in_the_step(tmp_path: Path, phase: str) -> None:
    """A rank that is let go later may finish the step, or a save, before it dies."""
    text = ALLOWED.replace("npu-link-down", "device-reset").replace("step: 6", f"step: 6, phase: {phase}")
    said = refusal(tmp_path, text.replace("steps: 12", "steps: 12, checkpoint_interval: 3"))
    assert f"device-reset cannot be made at {phase} of a step" in said


def test_a_machine_is_not_rebooted_under_the_harness(tmp_path: Path) -> None:
    assert "the harness runs on the same one" in refusal(tmp_path, ALLOWED.replace("npu-link-down", "node-reboot"))


def test_a_job_on_the_cpu_has_no_device_to_hit(tmp_path: Path) -> None:
    assert "the job trains on CPU" in refusal(tmp_path, ALLOWED.replace("device: Ascend, ", ""))


def test_the_tools_and_the_right_to_use_them_are_needed(tmp_path: Path) -> None:
    _, cell = loaded(tmp_path, ALLOWED)
    assert {"npu", "hccn_tool", "root"} <= set(needs_of_scenario(cell.scenario))
    bare = replace(cell, scenario=cell.scenario.model_copy(update={"faults": ()}))
    assert "hccn_tool" not in needs_of_scenario(bare.scenario)
    assert "npu" in needs_of_scenario(bare.scenario)


@pytest.mark.parametrize(
    ("kind", "job", "total"),
    [
        ("uce", "protection: [UCE]", 30.0),
        ("ecc", "protection: [UCE]", 60.0),
        ("kill", "protection: [TTP]", 600.0),
        ("kill", "protection: [TTP], resume: false", 600.0),
    ],
)
def test_on_hardware_the_budgets_are_what_the_vendor_states(tmp_path: Path, kind: str, job: str, total: float) -> None:
    text = SCENARIO.replace("npu-link-down", kind).replace("steps: 12", f"steps: 12, {job}")
    plan = plan_cell(*loaded(tmp_path, text))
    assert (plan.response.timings, plan.response.budget.total, plan.response.budget.phases) == ("hardware", total, {})
    assert f"{total:g} s in all  (" in render(plan)
    written = plan_cell(*loaded(tmp_path, text + "expect: {recovery: {phases: {detection: 9s}}}\n"))
    assert written.response.budget.phases == {"detection": 9.0}


def test_a_hazard_that_is_none_of_a_device_needs_leave_but_no_device(tmp_path: Path) -> None:
    hazard = Hazard("high", "stops a service of the machine", "started again", device=False)

    def planned(text: str) -> Plan:
        _, cell = loaded(tmp_path, text.replace("device: Ascend, ", "").replace("npu-link-down", "kill"))
        return build_plan(
            cell.scenario,
            Source("x.yaml", cell.lines),
            traits=KIND.traits,
            kinds={"kill": PlannedKind(DEATH, hazard)},
            draw_seed=lambda: 0,
        )

    with pytest.raises(ScenarioError, match="stops a service of the machine"):
        planned(SCENARIO)
    reasons = " ".join(planned(ALLOWED).explanation.reasons)
    assert "stops a service of the machine" in reasons and "80E01801" not in reasons
