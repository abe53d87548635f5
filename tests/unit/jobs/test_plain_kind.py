"""The job kind ``plain``: how its ranks are started, and what it says is not genuine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chaos.base.registry import registry
from chaos.base.wait import wait_for
from chaos.jobs.kind import Launch
from chaos.machine.job.processes import find_run_processes
from chaos.rehearsal.plain.job import KIND
from chaos.scenario.models.scenario import Scenario

LAUNCHER = Path(KIND.__class__.__module__.replace(".", "/")).with_name("plainrun.py")
ROOT = Path(__file__).parents[3]


def scenario(job: dict[str, Any] | None = None, **more: Any) -> Scenario:
    return Scenario.model_validate(
        {"chaos": 1, "name": "x", "cluster": {"ranks": 2}, "job": {"kind": "plain", "steps": 4, **(job or {})}, **more}
    )


def launch(one: Scenario, tmp_path: Path, sdk: str = "standin") -> Launch:
    return Launch(one, tmp_path, tmp_path, tmp_path / "logs", False, (12345,), Path(sys.executable), sdk)


def test_it_is_registered_and_needs_no_framework() -> None:
    assert registry("jobs").load("plain") is KIND
    assert KIND.needs == ()  # numpy of any version is there wherever this package is


def test_the_command_starts_the_ranks_with_the_protection_that_is_on(tmp_path: Path) -> None:
    command = KIND.command(launch(scenario({"protection": ["UCE"], "seed": 7}), tmp_path))
    assert command.argv[:2] == (sys.executable, str(ROOT / LAUNCHER))
    assert "--seed=7" in command.argv
    assert command.environment["MS_ENABLE_TFT"] == "{UCE:1}"
    assert command.environment["MS_TFT_PORT"] == "12345"
    assert [path.name for path in command.path] == ["sdk"]
    assert KIND.command(launch(scenario({"protection": ["UCE"]}), tmp_path, "vendor")).path == ()
    assert KIND.command(launch(scenario(), tmp_path)).path == ()


def test_every_result_says_that_there_is_no_framework() -> None:
    parts = {part.layer: part.part for part in KIND.simulated(scenario({"protection": ["TTP"]}), "standin")}
    assert "no framework" in parts["job"]
    assert parts["SDK"].startswith("mindio_ttp")
    assert "SDK" not in {part.layer for part in KIND.simulated(scenario({"protection": ["TTP"]}), "vendor")}


RANK = """
import json, os, sys, time
names = ("MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM", "RANK_ID")
told = {name: os.environ[name] for name in names}
print(json.dumps({**told, "session": os.getsid(0) == os.getpid(), "argv": sys.argv[1:]}), flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
"""


def test_the_launcher_starts_each_rank_in_a_session_of_its_own_and_ends(tmp_path: Path) -> None:
    (tmp_path / "rank.py").write_text(RANK)
    argv = [sys.executable, str(ROOT / LAUNCHER), "2", str(tmp_path), sys.executable, "rank.py", "--steps=4"]
    variables = {**os.environ, "CHAOS_RUN": f"plain-{os.getpid()}"}
    done = subprocess.run(argv, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=30)
    try:
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("Start worker process with rank id:") == 2
        logs = [tmp_path / f"worker_{rank}.log" for rank in range(2)]
        wait_for("what the ranks say", lambda: all(log.read_text() for log in logs), seconds=60)
        for rank, log in enumerate(logs):
            result = json.loads(log.read_text())
            assert result == {
                "MS_ROLE": "MS_WORKER",
                "MS_NODE_ID": str(rank),
                "MS_WORKER_NUM": "2",
                "RANK_ID": str(rank),
                "session": True,
                "argv": ["--steps=4"],
            }
        processes = find_run_processes(variables["CHAOS_RUN"])
        assert sorted((process.role, process.rank) for process in processes) == [("rank", 0), ("rank", 1)]
    finally:
        (tmp_path / "go").touch()


AGENT = """
import json, os, time
functions = {}
def init_taskd_agent(config): return config["Framework"] == "MindSpore"
def register_func(name, function): functions[name] = function
def wait(until):
    while not until(): time.sleep(0.01)
def start_taskd_agent():
    look = functions["MONITOR"]
    assert functions["START_ALL_WORKER"]() == 0
    first = look([-1])
    assert [one["status"] for one in first.values()] == [None, None]
    functions["KILL_WORKER"]([first[1]["pid"]])
    wait(lambda: look([1])[1]["status"] is not None)
    assert look([-1])[0]["status"] is None
    assert functions["START_WORKER_LIST"]([1]) == 0
    second = look([1])[1]
    functions["KILL_WORKER"]([-1])
    wait(lambda: all(one["status"] is not None for one in look([-1]).values()))
    print(json.dumps([first[1]["pid"] != second["pid"], [one["status"] for one in look([-1]).values()]]))
    raise SystemExit(3)
"""


def test_a_cluster_agent_is_handed_the_ranks_as_by_msrun(tmp_path: Path) -> None:
    package = tmp_path / "site" / "taskd" / "api"
    package.mkdir(parents=True)
    (package / "taskd_agent_api.py").write_text(AGENT)
    argv = [
        sys.executable,
        str(ROOT / LAUNCHER),
        "2",
        str(tmp_path),
        sys.executable,
        "-c",
        "import time; time.sleep(60)",
    ]
    variables = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(argv, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (3, "")
    assert json.loads(done.stdout.splitlines()[-1]) == [True, [-9, -9]]


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ({"compile_cache": True}, "compiles nothing that could be kept"),
        ({"graph": True}, "compiles no graphs"),
        ({"script": "own.py"}, "has a script of its own"),
        ({"storage": {"memory": True}}, "keeps no checkpoint in memory"),
    ],
)
def test_what_it_cannot_do_is_refused_by_name(job: dict[str, Any], said: str) -> None:
    from chaos.plan.rules.job_limits import job_violations
    from chaos.plan.topology.layout import layout_of

    one = scenario(job)
    (violation,) = job_violations(one, layout_of(one.cluster), KIND.traits)
    assert violation.message.startswith("job kind 'plain'")
    assert said in violation.message
    assert violation.path.startswith("job.")
