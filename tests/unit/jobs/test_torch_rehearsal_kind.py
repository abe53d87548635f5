"""The job kind ``torch-rehearsal``: torchrun, a loop like Megatron's, stand-ins in their layers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from chaos.base.registry import registry
from chaos.jobs.kind import JobError, Launch
from chaos.plan.model import Plan
from chaos.rehearsal.torch.job import KIND
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Scenario


def scenario(protection: list[str], **job: Any) -> Scenario:
    basis = {"kind": "torch-rehearsal", "steps": 12, "protection": protection}
    return Scenario.model_validate({"chaos": 1, "name": "x", "cluster": {"ranks": 4}, "job": {**basis, **job}})


def launch(of: Scenario, tmp_path: Path, *, resume: bool = False, sdk: str = "standin") -> Launch:
    return Launch(of, tmp_path, tmp_path, tmp_path / "logs", resume, (1234, 5678), Path(sys.executable), sdk)


def test_torchrun_starts_the_loop_with_mindspeeds_switches(tmp_path: Path) -> None:
    assert registry("jobs").load("torch-rehearsal") is KIND
    command = KIND.command(launch(scenario(["UCE"]), tmp_path))
    assert command.argv[:3] == (sys.executable, "-m", "torch.distributed.run")
    assert {"--max-restarts=0", "chaos.rehearsal.torch.train", "--train-iters=12"} < {*command.argv}
    assert {"--enable-high-availability", "--enable-hbmfault-repair"} < {*command.argv}
    assert "--enable-worker-reboot" not in command.argv and "--load" not in command.argv


def test_a_job_without_protection_has_no_switch_and_no_sdk(tmp_path: Path) -> None:
    command = KIND.command(launch(scenario([]), tmp_path))
    assert not [word for word in command.argv if word.startswith("--enable")]
    assert not {"TTP_ADDR", "TTP_PORT"} & command.environment.keys()
    assert not any(path.name == "sdk" for path in command.path)


def test_the_controller_has_the_port_that_was_leased(tmp_path: Path) -> None:
    command = KIND.command(launch(scenario(["TTP"]), tmp_path, resume=True))
    assert command.environment["TTP_PORT"] == "5678"
    assert "MINDIO_FOR_MINDSPORE" not in command.environment, "the SDK would work for MindSpore"
    assert "--load" in command.argv and "--enable-hbmfault-repair" not in command.argv


@pytest.mark.parametrize(
    ("job", "program"),
    [
        ({}, "torch.distributed.run"),
        ({"torchrun": {"edited": True}}, "chaos.rehearsal.torch.edited_torchrun"),
        ({"agent": True}, "chaos.rehearsal.torch.taskd_torchrun"),
    ],
)
def test_torchrun_is_as_it_is_or_edited_or_under_taskd(tmp_path: Path, job: dict[str, Any], program: str) -> None:
    command = KIND.command(launch(scenario(["TTP"], **job), tmp_path))
    assert command.argv[1:3] == ("-m", program)
    assert ("MINDX_TASK_ID" in command.environment) == ("agent" in job), "then rank 0 starts no controller"


@pytest.mark.parametrize(("numpy", "refused"), [("1.26.4", ""), (None, "has no numpy")])
def test_the_interpreter_of_the_scenario_runs_the_rehearsal(tmp_path: Path, numpy: str | None, refused: str) -> None:
    known = {"python": "3.11.4", "torch": "2.7.1", **({} if numpy is None else {"numpy": numpy})}
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\necho '{json.dumps(known)}'\n")
    path.chmod(0o755)
    own = scenario(["UCE"], python="./python")
    assert KIND.own_python(own, tmp_path) == path
    assert not {"torch", "numpy"} & set(KIND.needs_for(own))
    assert {"torch", "numpy"} <= set(KIND.needs_for(scenario(["UCE"])))
    assert [message for _, message, _ in KIND.missing_files(own, tmp_path)] == (
        [f"{path} {refused}"] if refused else []
    )
    assert KIND.fingerprint(own, tmp_path).items() >= {"torch": "2.7.1", "interpreter": str(path)}.items()


def test_every_stand_in_is_named_with_its_layer() -> None:
    layers = {part.layer: part.part for part in KIND.simulated(scenario(["UCE"]), "standin")}
    assert layers.keys() == {"framework", "device layer", "SDK"}
    assert "MindSpeed-LLM is not rehearsed" in layers["framework"]


def test_the_vendors_sdk_is_refused_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="has not been run with the vendor's MindIO TFT"):
        KIND.prepare(launch(scenario(["UCE"]), tmp_path, sdk="vendor"))
    KIND.prepare(launch(scenario([]), tmp_path, sdk="vendor"))


def plan(tmp_path: Path, fault: str, protection: str, more: str = "", job: str = "") -> Plan:
    path = tmp_path / "x.yaml"
    path.write_text(
        f"chaos: 1\nname: x\ncluster: {{ranks: 4}}\njob: {{kind: torch-rehearsal, steps: 12, protection: "
        f"[{protection}]{job}}}\nfaults:\n  - {fault}\nexpect: {{{more}}}\n"
    )
    loaded = load_scenario(path, names=known_names())
    return plan_cell(loaded, loaded.cells[0])


UCE = "{id: f, kind: uce, target: {rank: 1}, trigger: {step: 5, phase: forward}}"
KILL = "{id: f, kind: kill, target: {rank: 2}, trigger: {step: 7, phase: forward}}"


def test_a_memory_error_is_repaired_by_a_replica(tmp_path: Path) -> None:
    planned = plan(tmp_path, UCE, "UCE")
    (recovery,) = planned.response.recoveries
    assert (recovery.mechanism, recovery.step, recovery.copied) == ("UCE", 4, (1,))


def test_a_loss_leaves_one_file_in_megatrons_layout(tmp_path: Path) -> None:
    planned = plan(tmp_path, KILL, "TTP", "checkpoint: {step: 6}, resume: {step: 7}")
    assert planned.response.mechanism == "TTP"
    assert planned.checkpoint is not None
    assert planned.checkpoint.files == {0: "iter_0000006/mp_rank_00/model_optim_rng.pt"}


def test_a_rank_is_replaced_by_the_clusters_agent(tmp_path: Path) -> None:
    (recovery,) = plan(tmp_path, KILL, "TTP, ARF", job=", agent: true").response.recoveries
    assert (recovery.mechanism, recovery.step, recovery.restarted) == ("ARF", 6, (2,))


@pytest.mark.parametrize(
    ("fault", "job", "words"),
    [
        (KILL, "", "torchrun itself starts no single rank again"),
        (KILL.replace("rank: 2", "rank: 0"), ", agent: true", "replacement of rank 0 is not yet supported"),
        (KILL, ", agent: true, torchrun: {edited: true}", "which ends none by itself"),
    ],
)
def test_a_replacement_that_cannot_be_shown_is_refused(tmp_path: Path, fault: str, job: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        plan(tmp_path, fault, "TTP, ARF", job=job)


@pytest.mark.parametrize(
    ("fault", "protection", "words"),
    [
        ("{id: f, kind: hcce, target: {rank: 1}, trigger: {step: 5, phase: forward}}", "HCCE", "HCCE without TTP"),
        (KILL, "ELASTIC", "does not take part in ELASTIC"),
        (KILL, "TTP, ELASTIC", "ELASTIC behind TTP is not yet supported by this version: the vendor's launch line may"),
    ],
)
def test_what_it_cannot_show_is_refused(tmp_path: Path, fault: str, protection: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        plan(tmp_path, fault, protection)
