"""What a job is started with: nothing that a user sets is lost, and nothing secret is in sight."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.agent.configuration import read_configuration
from chaos.jobs.kind import Command
from chaos.machine.job.launcher_environment import launcher_environment
from chaos.machine.job.protocol import LaunchSpec
from chaos.run.launch.setup import AGENT_SITE, launch_spec, write_agent_configuration, write_secret
from chaos.scenario.models.scenario import Scenario

PYTHON = Path("/venv/bin/python")


def scenario(command: list[str] | None = None, **environment: str) -> Scenario:
    return Scenario.model_validate(
        {
            "chaos": 1,
            "name": "n",
            "cluster": {"ranks": 4},
            "job": {"steps": 5, "command": command, "environment": environment, "timings": "vendor"},
        }
    )


def launch(
    scenario: Scenario, *, inherited: dict[str, str], command: dict[str, str] | None = None, path: tuple[Path, ...] = ()
) -> LaunchSpec:
    """The launch, its environment whole: as on a node with that of its own."""
    spec = handed(scenario, command=command, path=path)
    return replace(spec, environment=launcher_environment(inherited, spec.environment, spec.before))


def handed(
    scenario: Scenario,
    *,
    command: dict[str, str] | None = None,
    path: tuple[Path, ...] = (),
    cores: tuple[int, ...] | None = (0, 1),
) -> LaunchSpec:
    return launch_spec(
        Command(("msrun", "x.py"), command or {}, path),
        token="run-1",
        attempt="train",
        configuration=Path("/private/agent-train.json"),
        python=PYTHON,
        scenario=scenario,
        cwd=Path("/job"),
        log=Path("/log"),
        cores=cores,
    )


def test_only_what_the_run_sets_is_handed_over_whatever_the_harness_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"HOME": "/root", "LD_LIBRARY_PATH": "/cann", "TOKEN": "hunter2", "A": "1"}.items():
        monkeypatch.setenv(name, value)
    spec = handed(scenario(A="1"), command={"MS_TFT_IP": "10.0.0.1"}, path=(Path("/sdk"),))
    assert spec.environment == {
        "A": "1",
        "MS_TFT_IP": "10.0.0.1",
        "CHAOS_AGENT": "/private/agent-train.json",
        "CHAOS_AGENT_SITE": str(AGENT_SITE),
    }
    assert spec.before["PATH"] == "/venv/bin"
    assert spec.before["PYTHONPATH"].split(os.pathsep)[1:] == ["/sdk"]


def test_a_launcher_of_the_users_own_keeps_to_the_runs_directory_and_cores() -> None:
    """mpirun and torchrun leave directories in TMPDIR, and mpirun binds ranks to cores that other jobs hold."""
    binding = {"OMPI_MCA_hwloc_base_binding_policy": "none", "PRTE_MCA_hwloc_default_binding_policy": "none"}
    kept = {"TMPDIR": "/private", **binding}
    assert kept.items() <= handed(scenario(["mpirun"])).environment.items()
    assert handed(scenario(["mpirun"], TMPDIR="/big")).environment["TMPDIR"] == "/big"
    assert not kept.keys() & handed(scenario()).environment.keys()
    elsewhere = handed(scenario(["mpirun"]), cores=None).environment
    assert elsewhere["TMPDIR"] == "/private" and not binding.keys() & elsewhere.keys()


def test_later_ones_win_harness_then_job_kind_then_scenario() -> None:
    inherited = {"A": "harness", "B": "harness", "C": "harness"}
    spec = launch(scenario(C="scenario"), inherited=inherited, command={"B": "kind", "C": "kind"})
    assert {name: spec.environment[name] for name in "ABC"} == {"A": "harness", "B": "kind", "C": "scenario"}
    assert (spec.run, spec.attempt, spec.argv, spec.cores) == ("run-1", "train", ("msrun", "x.py"), (0, 1))


def test_mechanisms_that_the_shell_has_on_do_not_reach_the_job() -> None:
    shell = {"MS_ENABLE_TFT": "{TTP:1}", "MS_TFT_IP": "10.0.0.1", "MS_TFT_PORT": "1", "MINDIO_FOR_MINDSPORE": "1"}
    shell["MINDX_TASK_ID"] = "7"
    assert not shell.keys() & launch(scenario(), inherited=shell).environment.keys()
    assert launch(scenario(), inherited=shell, command={"MS_TFT_PORT": "2"}).environment["MS_TFT_PORT"] == "2"
    own = scenario(MS_ENABLE_TFT="{UCE:1}")
    assert launch(own, inherited=shell).environment["MS_ENABLE_TFT"] == "{UCE:1}"


def test_what_is_put_in_goes_before_the_users_own_path_and_modules() -> None:
    spec = launch(scenario(), inherited={"PATH": "/a:/b", "PYTHONPATH": "/mine"}, path=(Path("/sdk"),))
    assert spec.environment["PATH"] == "/venv/bin:/a:/b"
    site, *rest = spec.environment["PYTHONPATH"].split(os.pathsep)
    assert (Path(site) / "sitecustomize.py").is_file()
    assert rest == ["/sdk", "/mine"]


def test_a_scenarios_path_and_modules_are_kept_in_place_of_the_harnesss() -> None:
    own = scenario(PATH="/tools", PYTHONPATH="/job/modules:/more")
    spec = launch(own, inherited={"PATH": "/a", "PYTHONPATH": "/mine"}, path=(Path("/sdk"),))
    assert spec.environment["PATH"] == "/venv/bin:/tools"
    assert spec.environment["PYTHONPATH"].split(os.pathsep)[1:] == ["/sdk", "/job/modules", "/more"]


def test_without_any_path_the_systems_default_is_taken() -> None:
    spec = launch(scenario(), inherited={})
    assert spec.environment["PATH"] == f"/venv/bin:{os.defpath}"
    # An empty entry would mean the current directory.
    assert "" not in spec.environment["PYTHONPATH"].split(os.pathsep)


def test_a_scenario_cannot_lead_the_agent_away() -> None:
    spec = launch(scenario(CHAOS_AGENT="/elsewhere.json"), inherited={"CHAOS_AGENT": "/outer.json"})
    assert spec.environment["CHAOS_AGENT"] == "/private/agent-train.json"


def test_the_agent_is_told_where_the_secret_is_and_not_what_it_is(tmp_path: Path) -> None:
    secret = write_secret(tmp_path)
    path = write_agent_configuration(
        tmp_path,
        token="run-1",
        attempt="resume",
        history=tmp_path / "history",
        extensions=("device",),
        scenario=scenario(),
    )
    assert secret not in path.read_text()
    answer = read_configuration(str(path))
    assert (answer.run, answer.attempt, answer.history) == ("run-1", "resume", str(tmp_path / "history"))
    assert (answer.extensions, answer.digest_interval) == (["device"], 1)
    assert answer.settings == {
        "timings": "vendor",
        "step_optimizer": None,
        "exports": [],
        "seed_at_start": None,
        "unprotected": True,
        "hccl": None,
        "storage": {"mb_per_second": None, "memory": None},
    }
    assert answer.secret is not None
    assert Path(answer.secret).read_text() == secret
    assert json.loads(path.read_text())["socket"] == str(tmp_path / "agents")
