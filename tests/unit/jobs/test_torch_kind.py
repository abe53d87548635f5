"""The job kind ``torch``: a user's script under torchrun, on any device, with nothing put in place of anything."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chaos.base.registry import registry
from chaos.cli.main import entry
from chaos.jobs.kind import JobError, Launch
from chaos.jobs.torch.job import KIND
from chaos.jobs.torch.probe import torch
from chaos.machine.job.protocol import Place
from chaos.plan.platform_traits import SEVERAL_HOSTS
from chaos.plan.rules.device import device_violations
from chaos.scenario.models.scenario import Scenario


class Machine:
    """A machine with one release of PyTorch, or none."""

    def __init__(self, version: str | None) -> None:
        self._version = version

    def version(self, package: str) -> str | None:
        return self._version if package == "torch" else None


def scenario(**job: Any) -> Scenario:
    basis = {"kind": "torch", "script": "train.py", "arguments": ["--steps=12"], "steps": 12}
    return Scenario.model_validate({"chaos": 1, "name": "x", "cluster": {"ranks": 4}, "job": {**basis, **job}})


@pytest.fixture
def launch(tmp_path: Path) -> Any:
    (tmp_path / "train.py").write_text("import torch")

    def make(one: Scenario, *, resume: bool = False, place: Place | None = None) -> Launch:
        python = Path(sys.executable)
        return Launch(one, tmp_path, tmp_path, tmp_path / "logs", resume, (1234,), python, "standin", place)

    return make


def test_torchrun_starts_the_script_on_loopback(launch: Any) -> None:
    assert registry("jobs").load("torch") is KIND
    command = KIND.command(launch(scenario(resume_arguments=["--again"])))
    assert command.argv[:3] == (sys.executable, "-m", "torch.distributed.run")
    assert {"--nnodes=1", "--nproc-per-node=4", "--rdzv-endpoint=127.0.0.1:1234", "--max-restarts=0"} < {*command.argv}
    assert {"--rdzv-backend=c10d", "--local-addr=127.0.0.1", "--monitor-interval=0.1"} < {*command.argv}
    assert f"--log-dir={command_logs(launch)}" in command.argv, "torchrun's own would outlive the run"
    assert Path(command.argv[-2]).name == "train.py"
    assert command.argv[-1] == "--steps=12"
    assert command.environment["GLOO_SOCKET_IFNAME"] == "lo"
    assert KIND.simulated(scenario(), "standin") == ()


def test_a_resume_gets_its_further_arguments(launch: Any) -> None:
    command = KIND.command(launch(scenario(resume_arguments=["--again"]), resume=True))
    assert command.argv[-2:] == ("--steps=12", "--again")


def test_the_store_of_the_ranks_is_their_own_unless_the_scenario_shares_it(launch: Any) -> None:
    own = KIND.command(launch(scenario()))
    shared = KIND.command(launch(scenario(torchrun={"store": "shared"})))
    assert own.environment["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
    assert "TORCH_DISABLE_SHARE_RDZV_TCP_STORE" not in shared.environment


def test_torchrun_starts_ranks_again_as_often_as_the_mechanism_may(launch: Any) -> None:
    def restarts(**job: Any) -> str:
        return next(word for word in KIND.command(launch(scenario(**job))).argv if word.startswith("--max-restarts"))

    assert restarts(protection=["ELASTIC"], restart_limit=2) == "--max-restarts=2"
    assert restarts(protection=["ELASTIC"]) == "--max-restarts=3"
    assert restarts(protection=["RSC"], restart_limit=2) == "--max-restarts=0"
    assert "MS_ENABLE_TFT" not in KIND.command(launch(scenario(protection=["ELASTIC"]))).environment


def test_a_node_starts_its_own_ranks_and_meets_at_the_first_node(launch: Any, tmp_path: Path) -> None:
    place = Place(1, 2, (2, 3), 4, "10.0.0.2", "10.0.0.1", tmp_path)
    command = KIND.command(launch(scenario(torchrun={"rendezvous": "static"}), place=place))
    assert {"--nnodes=2", "--node-rank=1", "--nproc-per-node=2", "--rdzv-endpoint=10.0.0.1:1234"} < {*command.argv}
    assert {"--rdzv-backend=static", "--local-addr=10.0.0.2"} < {*command.argv}
    assert "GLOO_SOCKET_IFNAME" not in command.environment


def test_the_first_of_several_nodes_holds_the_store_whatever_the_names_of_hosts_are(
    launch: Any, tmp_path: Path
) -> None:
    def conf(node: int, **options: str) -> list[str]:
        place = Place(node, 2, (2 * node, 2 * node + 1), 4, f"10.0.0.{node + 1}", "10.0.0.1", tmp_path)
        argv = KIND.command(launch(scenario(torchrun=options), place=place)).argv
        assert not any(word.startswith("--node-rank") for word in argv), "c10d numbers the nodes by their addresses"
        return [word for word in argv if word.startswith("--rdzv-conf")]

    assert conf(0) == ["--rdzv-conf=is_host=true"]
    assert conf(1, join_timeout="20s") == ["--rdzv-conf=is_host=false,join_timeout=20"]
    assert not any(word.startswith("--rdzv-conf") for word in KIND.command(launch(scenario())).argv)


def test_a_launcher_of_the_users_own_takes_the_place_of_torchrun(launch: Any) -> None:
    own = scenario(command=["accelerate", "launch", "--num_processes={ranks}"])
    command = KIND.command(launch(own))
    assert command.argv[:3] == ("accelerate", "launch", "--num_processes=4")
    assert "RANK/WORLD_SIZE" in command.environment["CHAOS_RANKS"]


def test_a_job_without_a_script_is_refused(launch: Any) -> None:
    with pytest.raises(JobError, match="the job kind torch has no script of its own"):
        KIND.prepare(launch(scenario(script=None)))


def command_logs(launch: Any) -> Path:
    """Return the directory for torchrun's own files in a launch."""
    return Path(launch(scenario()).logs) / "torchrun"


@pytest.mark.parametrize("version", ["2.1.0", "2.7.1+cpu", "2.13.0+cpu", "3.0"])
def test_a_supported_release_of_any_build_will_do(version: str) -> None:
    assert torch(Machine(version)).ok  # type: ignore[arg-type]


@pytest.mark.parametrize(("version", "advice"), [(None, "chaos-ascend[torch]"), ("1.11.0", "PyTorch 2.1 or later")])
def test_another_release_and_none_are_told_with_the_remedy(version: str | None, advice: str) -> None:
    probe = torch(Machine(version))  # type: ignore[arg-type]
    assert not probe.ok
    assert advice in probe.advice


def test_switches_of_mindspeed_are_no_part_of_the_plan_and_it_says_so() -> None:
    switched = scenario(arguments=["--enable-high-availability", "--enable-hbmfault-repair"])
    (remark,) = KIND.remarks(switched)
    assert "--enable-high-availability, --enable-hbmfault-repair are switches of MindSpeed-LLM" in remark
    assert "job kind mindspeed plans" in remark
    (remark,) = KIND.remarks(scenario(environment={"HIGH_AVAILABILITY": "dump"}))
    assert "HIGH_AVAILABILITY=dump is a switch" in remark
    assert list(KIND.remarks(scenario())) == []


def another_python(tmp_path: Path, *, python: str = "3.10.1", torch: str | None = "2.7.1", **others: str) -> Path:
    """Make a program that answers as an interpreter with these releases does."""
    path = tmp_path / "python-of-the-user"
    known = {"python": python, **({} if torch is None else {"torch": torch}), **others}
    path.write_text(f"#!/bin/sh\necho '{json.dumps(known)}'\n")
    path.chmod(0o755)
    return path


def test_the_interpreter_of_the_scenario_runs_the_ranks_and_is_known_by_its_releases(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch")
    path = another_python(tmp_path)
    for named in (str(path), "./python-of-the-user"):
        own = scenario(python=named)
        assert KIND.own_python(own, tmp_path) == path
        assert list(KIND.missing_files(own, tmp_path)) == []
        assert {**KIND.fingerprint(own, tmp_path)}.items() >= {"torch": "2.7.1", "interpreter": str(path)}.items()
        assert KIND.needs_for(own) == (), "the harness's own Python needs no PyTorch"
    assert KIND.own_python(scenario(), tmp_path) is None
    assert KIND.needs_for(scenario()) == ("torch",)
    assert KIND.own_python(scenario(python="sh"), tmp_path) == Path(str(shutil.which("sh")))


@pytest.mark.parametrize(
    ("releases", "words"),
    [
        ({"torch": None}, "PyTorch: not installed"),
        ({"torch": "1.11.0"}, "PyTorch: 1.11.0"),
        ({"python": "3.8.10"}, "is Python 3.8.10, and the agent needs 3.9"),
    ],
)
def test_an_interpreter_that_will_not_do_is_refused(tmp_path: Path, releases: dict[str, Any], words: str) -> None:
    (tmp_path / "train.py").write_text("import torch")
    own = scenario(python=str(another_python(tmp_path, **releases)))
    ((path, message, _),) = KIND.missing_files(own, tmp_path)
    assert path == "job.python"
    assert words in message


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("./none", "cannot be executed"),
        ("no-such-python-anywhere", "no program no-such-python-anywhere on PATH"),
        ("true", "does not say which packages it has"),
    ],
)
def test_no_interpreter_is_refused(tmp_path: Path, named: str, words: str) -> None:
    (tmp_path / "train.py").write_text("import torch")
    ((path, message, _),) = KIND.missing_files(scenario(python=named), tmp_path)
    assert path == "job.python"
    assert words in message


def test_the_release_of_pytorch_is_part_of_the_baseline_of_every_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("import torch")
    for version in ("2.7.1", "2.13.0"):
        monkeypatch.setattr("chaos.jobs.torch.own_python.version_of", lambda name, version=version: version)
        assert KIND.fingerprint(scenario(), tmp_path)["torch"] == version


@pytest.mark.parametrize(("key", "value"), [("seed_at_start", True), ("step_optimizer", 2)])
def test_only_this_kind_knows_generators_and_optimizers_of_a_script(key: str, value: object) -> None:
    job = {"kind": "torch", "script": "train.py", "steps": 12, key: value}
    seeded = Scenario.model_validate({"chaos": 1, "name": "a", "cluster": {"ranks": 2}, "job": job})
    assert list(device_violations(seeded, KIND.traits, SEVERAL_HOSTS)) == []
    (violation,) = device_violations(seeded, replace(KIND.traits, seeds=False, optimizers=False), SEVERAL_HOSTS)
    assert (violation.path, violation.hint) == (f"job.{key}", "leave it out, or use the job kind torch")


@pytest.mark.parametrize(
    ("releases", "ok", "seen"),
    [
        ({"python": "3.9.20", "torch": "2.5.1", "numpy": "2.0.2"}, True, "Python 3.9.20, numpy 2.0.2, PyTorch 2.5.1"),
        (
            {"python": "3.11.4", "torch": "2.7.1"},
            True,
            "PyTorch 2.7.1; torchrun shares a store between restarts (F-16)",
        ),
        ({"torch": "2.0.1"}, False, "PyTorch: 2.0.1"),
    ],
)
def test_the_doctor_looks_into_the_interpreter_of_the_job(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], releases: dict[str, Any], ok: bool, seen: str
) -> None:
    (tmp_path / "train.py").write_text("import torch")
    python = another_python(tmp_path, **releases)
    file = tmp_path / "own.yaml"
    file.write_text(
        "chaos: 1\nname: own\ncluster: {ranks: 2}\n"
        f"job: {{kind: torch, script: train.py, steps: 4, python: {python}}}\n"
    )
    code = entry(["doctor", str(file), "--json"])
    found = json.loads(capfd.readouterr().out)
    (probe,) = [probe for probe in found["probes"] if probe["need"] == f"job.python {python}"]
    assert (probe["ok"], seen in probe["seen"]) == (ok, True)
    assert (f"job.python {python}" in found["missing"]) != ok
    assert ok or code == 2
    assert "torch" not in found["missing"], "the harness's own PyTorch is not asked for"


def test_the_doctor_says_which_interpreter_is_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text("import torch")
    (tmp_path / "own.yaml").write_text(
        "chaos: 1\nname: own\ncluster: {ranks: 2}\njob: {kind: torch, script: train.py, steps: 4, python: ./none}\n"
    )
    assert entry(["doctor", str(tmp_path / "own.yaml")]) == 2
    said = capfd.readouterr().out
    assert "job.python ./none" in said and "cannot be executed" in said
