"""A rehearsal of MindFormers whose agent comes as a callback: what comes in is told, what cannot be had is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from chaos.checks.scope import not_checked
from chaos.jobs.kind import Command, Launch
from chaos.plan.model import Plan
from chaos.plan.render import render
from chaos.rehearsal.mindformers.as_callback import SITE, trained_from
from chaos.rehearsal.mindformers.job import KIND
from chaos.run.launch.setup import AGENT_SITE, launch_spec
from chaos.run.prepare.prepare import known_names, plan_cell
from chaos.scenario.errors import ScenarioError
from chaos.scenario.load import load_scenario
from chaos.scenario.models.scenario import Scenario

SCENARIO = """\
chaos: 1
name: example
job:
  kind: mindformers-rehearsal
  config: llama.yaml
  loading: callback
  steps: 12
faults:
  - kind: kill
    target: {rank: 0}
    trigger: {step: 8}
expect: {resume: {step: 7}}
"""


def planned(tmp_path: Path, text: str = SCENARIO) -> Plan:
    (tmp_path / "s.yaml").write_text(text, "utf-8")
    loaded = load_scenario(tmp_path / "s.yaml", names=known_names())
    return plan_cell(loaded, loaded.cells[0], draw_seed=0)


def scenario(loading: str, fault: str = "kill") -> Scenario:
    described = {"kind": KIND.name, "config": "llama.yaml", "steps": 12, "loading": loading}
    faults = [{"kind": fault, "target": {"rank": 0}, "trigger": {"step": 8}}]
    return Scenario.model_validate(
        {"chaos": 1, "name": "n", "cluster": {"ranks": 1}, "job": described, "faults": faults}
    )


def launched(tmp_path: Path, loading: str) -> tuple[Command, dict[str, Any]]:
    """The command of a first launch, and the copy of the configuration that it trains from."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "msrun").touch()
    python = tmp_path / "python"
    command = KIND.command(
        Launch(scenario(loading), tmp_path, tmp_path, tmp_path / "logs", False, (1, 2), python, "standin")
    )
    return command, yaml.safe_load((tmp_path / "mindformers.yaml").read_text("utf-8"))


def test_a_kill_is_planned_with_a_resume_from_the_checkpoint_before_it(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert plan.resume.restore is not None
    assert (plan.resume.restore.step, plan.resume.resume_step) == (6, 7)


def test_that_no_gradients_are_compared_is_said_by_the_plan_and_beside_the_verdict(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert not plan.training.gradients
    assert "loss        equal bit for bit, without the gradients, which are not recorded" in render(plan)
    assert [exclusion.what for exclusion in not_checked(plan) if exclusion.check == "loss"] == ["gradients"]
    by_path = planned(tmp_path, SCENARIO.replace("callback", "path"))
    assert by_path.training.gradients
    assert "without the gradients" not in render(by_path)


REFUSED = {
    "several ranks": (
        "  steps: 12",
        "  overrides: {parallel_config.data_parallel: 2}\n  steps: 12",
        "s.yaml:7:15: cluster.ranks, which",
        "trains on 1 rank at most, and there are 2",
        "(job.loading: path)",
    ),
    "several ranks by the scenario": (
        "faults:",
        "cluster: {ranks: 2}\nfaults:",
        "s.yaml:8:11",
        "trains on 1 rank at most, and there are 2",
        "(job.loading: path)",
    ),
    **{
        mechanism: (
            "  steps: 12",
            f"  protection: [{mechanism}]\n  steps: 12",
            "s.yaml:7:3",
            f"with its agent as a callback, does not take part in {mechanism}",
            "leave job.protection empty, or let the agent come by PYTHONPATH",
        )
        for mechanism in ("TTP", "UCE", "HCCE", "TRE", "ARF", "TSP", "RSC")
    },
    **{
        phase: (
            "step: 8",
            f"step: 8, phase: {phase}",
            "s.yaml:11:",
            f"with its agent as a callback, cannot observe phase {phase}",
            "it observes: step.begin, step.end, checkpoint.begin",
        )
        for phase in ("forward", "allreduce.enter", "optimizer.update")
    },
    "collectives of the device layer": (
        "  steps: 12",
        "  hccl: {}\n  steps: 12",
        "s.yaml:7:3",
        "with its agent as a callback, has no device layer or stand-in that would heed it",
        "leave job.hccl out",
    ),
    "a storage that is held back": (
        "  steps: 12",
        "  storage: {mb_per_second: 3}\n  steps: 12",
        "s.yaml:7:13",
        "with its agent as a callback, has no device layer or stand-in that would heed it",
        "leave job.storage.mb_per_second out",
    ),
}


@pytest.mark.parametrize(("old", "new", "place", "message", "hint"), REFUSED.values(), ids=list(REFUSED))
def test_what_needs_the_device_layer_is_refused_with_its_line_and_a_hint(
    tmp_path: Path, old: str, new: str, place: str, message: str, hint: str
) -> None:
    with pytest.raises(ScenarioError) as refused:
        planned(tmp_path, SCENARIO.replace(old, new))
    found = [problem for problem in refused.value.problems if message in problem.message]
    assert len(found) == 1, str(refused.value)
    assert place in str(found[0])
    assert hint in found[0].hint


def test_without_the_device_layer_kernels_alone_are_not_genuine() -> None:
    def layers(loading: str, fault: str = "kill") -> list[str]:
        return [part.layer for part in KIND.simulated(scenario(loading, fault), "standin")]

    assert layers("callback") == ["kernels"]
    assert layers("path") == ["kernels", "device layer", "device layer"]
    assert layers("callback", "link-error") == ["kernels", "device layer"]


def test_the_agent_is_not_on_the_path_and_the_kernels_are(tmp_path: Path) -> None:
    command, copy = launched(tmp_path, "callback")
    spec = launch_spec(
        command,
        token="run",
        attempt="train",
        configuration=tmp_path / "agent.json",
        python=tmp_path / "python",
        scenario=scenario("callback"),
        cwd=tmp_path,
        log=tmp_path / "log",
        cores=None,
    )
    assert spec.before["PYTHONPATH"].split(os.pathsep) == [str(SITE)]
    assert str(AGENT_SITE) not in json.dumps(dict(spec.environment))
    assert copy["callbacks"][-1]["type"] == "ChaosAgent"
    assert copy["context"]["affinity_cpu_list"] == []


def test_with_the_device_layer_neither_is_changed(tmp_path: Path) -> None:
    command, copy = launched(tmp_path, "path")
    assert command.agent_by_path and SITE not in command.path
    assert "affinity_cpu_list" not in copy["context"]
    assert "ChaosAgent" not in json.dumps(copy["callbacks"])


@pytest.mark.parametrize("key", ["affinity_cpu_list", "affinity_config"])
def test_processors_that_the_configuration_binds_itself_are_left_to_it(key: str) -> None:
    own = {"context": {key: {"device_0": ["0-1"]}}}
    assert trained_from(own) == own


FRAMEWORK = {
    "mindspore/__init__.py": "",
    "mindspore/ops.py": "",
    "mindspore/nn/__init__.py": "",
    "mindspore/nn/wrap/__init__.py": "",
    "mindspore/nn/wrap/loss_scale.py": (
        "class TrainOneStepWithLossScaleCell:\n    def get_overflow_status(self, status, gradients):\n        pass\n"
    ),
}
"""What of MindSpore a replaced kernel needs; nothing of it is computed here."""


def test_kernels_come_without_the_agent_and_hide_no_other_sitecustomize(tmp_path: Path) -> None:
    for name, text in FRAMEWORK.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.other = 'loaded'\n", "utf-8")
    code = (
        "import sys\nfrom mindspore.nn.wrap.loss_scale import TrainOneStepWithLossScaleCell as step\n"
        "print(sys.other, step.get_overflow_status.__module__)\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'chaos'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={
            "PYTHONPATH": os.pathsep.join((str(SITE), str(tmp_path))),
            "CHAOS_AGENT": str(tmp_path / "absent.json"),
            "MS_ROLE": "MS_WORKER",
            "MS_NODE_ID": "0",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["loaded rehearsed_kernels", "[]"]
    assert done.stderr == ""
