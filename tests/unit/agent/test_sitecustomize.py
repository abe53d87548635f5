"""The agent's sitecustomize is loaded into every process of a job, and changes nothing in it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from chaos.history.reader import read_history
from tests.unit.agent.conftest import TREE

SITE = TREE / "agent" / "site"
RANK = {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": "1", "MS_WORKER_NUM": "4"}
SHOW = "import json, sys; print(json.dumps([sorted(sys.modules), sys.path]))"


def execute(python: str, code: str, *before: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, before))
    return subprocess.run(
        [python, "-c", code], env={"PYTHONPATH": path, **variables}, capture_output=True, text=True, check=True
    )


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    history = tmp_path / "history"
    history.mkdir()
    path = tmp_path / "agent.json"
    path.write_text(json.dumps({"run": "run-1", "attempt": "train", "history": str(history)}))
    return path


def test_without_a_scenario_it_does_nothing(python: str) -> None:
    done = execute(python, SHOW, SITE, **RANK)
    modules, path = json.loads(done.stdout)
    assert [name for name in modules if name.split(".")[0] in ("chaos", "mindspore")] == []
    plain = json.loads(execute(python, SHOW).stdout)
    assert [entry for entry in path if entry != str(SITE)] == plain[1]
    assert done.stderr == ""


def test_in_a_rank_it_starts_the_agent_of_its_own_tree_and_leaves_the_path_alone(
    python: str, configuration: Path
) -> None:
    done = execute(python, SHOW, SITE, CHAOS_AGENT=str(configuration), **RANK)
    modules, path = json.loads(done.stdout)
    assert done.stderr == ""
    assert "chaos.agent.start" in modules
    assert "mindspore" not in modules
    assert path == json.loads(execute(python, SHOW, SITE).stdout)[1]
    read = read_history(configuration.parent / "history")
    assert [event.event for event in read.events] == ["writer.start", "agent.start", "steps.none"]
    assert read.events[1].rank == 1
    assert read.problems == ()


@pytest.mark.parametrize("role", [{"MS_ROLE": "MS_SCHED"}, {}])
def test_scheduler_and_launcher_have_no_history(python: str, configuration: Path, role: dict[str, str]) -> None:
    execute(python, SHOW, SITE, CHAOS_AGENT=str(configuration), **role)
    assert read_history(configuration.parent / "history").events == ()


@pytest.mark.parametrize("variables", [{}, RANK])
def test_the_sitecustomize_that_it_hides_still_runs(
    python: str, tmp_path: Path, configuration: Path, variables: dict[str, str]
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os\nos.environ['OWN'] = __file__\n")
    code = "import os, sitecustomize; print(os.environ['OWN'], sitecustomize.__file__)"
    for chaos_agent in ({}, {"CHAOS_AGENT": str(configuration)}):
        done = execute(python, code, SITE, own, **variables, **chaos_agent)
        assert done.stdout.split() == [str(own / "sitecustomize.py")] * 2
        assert done.stderr == ""


def test_an_agent_that_cannot_start_hides_nothing_and_says_so(python: str, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os\nos.environ['OWN'] = 'yes'\n")
    done = execute(
        python, "import os; print(os.environ['OWN'])", SITE, own, CHAOS_AGENT=str(tmp_path / "absent.json"), **RANK
    )
    assert done.stdout == "yes\n"
    assert "absent.json" in done.stderr


def test_the_same_tree_twice_on_the_path_runs_once(python: str, configuration: Path) -> None:
    done = execute(python, "print('ok')", SITE, SITE, CHAOS_AGENT=str(configuration), **RANK)
    assert (done.stdout, done.stderr) == ("ok\n", "")


def test_a_rank_whose_harness_is_gone_trains_alone(python: str, tmp_path: Path, configuration: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s")
    values = json.loads(configuration.read_text())
    configuration.write_text(json.dumps({**values, "socket": str(tmp_path / "absent"), "secret": str(secret)}))
    done = execute(python, "print('trains')", SITE, CHAOS_AGENT=str(configuration), **RANK)
    assert (done.stdout, done.stderr) == ("trains\n", "")
    read = read_history(tmp_path / "history")
    assert [event.event for event in read.events][-2:] == ["agent.alone", "steps.none"]


def test_an_extension_is_installed_before_the_job_starts(python: str, tmp_path: Path, configuration: Path) -> None:
    (tmp_path / "extra_device.py").write_text(
        "def install(agent):\n    agent.imports.watch('colorsys', lambda m: print(m.__name__, agent.place.rank))\n"
    )
    values = json.loads(configuration.read_text())
    configuration.write_text(json.dumps({**values, "extensions": ["extra_device"]}))
    done = execute(python, "import colorsys", SITE, tmp_path, CHAOS_AGENT=str(configuration), **RANK)
    assert done.stdout == "colorsys 1\n"
