"""The job kind ``torchft``: a lighthouse and a process for each replica group, which a failed group gets again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from chaos.agent.launcher.rank_variables import VARIABLE
from chaos.jobs.kind import Launch
from chaos.jobs.torchft import replica_groups
from chaos.jobs.torchft.job import KIND
from chaos.jobs.torchft.probe import torchft
from chaos.machine.job.processes import BESIDE, ROLE_VARIABLE, claim_of
from chaos.plan.topology.targets import BESIDE_RANKS
from chaos.scenario.models.scenario import Scenario

PORTS = tuple(range(5000, 5017))


def scenario(**job: Any) -> Scenario:
    basis = {"kind": "torchft", "script": "train.py", "steps": 12, "protection": ["FT"]}
    return Scenario.model_validate({"chaos": 1, "name": "x", "cluster": {"ranks": 3}, "job": {**basis, **job}})


def command(tmp_path: Path, **job: Any) -> Any:
    (tmp_path / "train.py").write_text("import torchft")
    own = Launch(scenario(**job), tmp_path, tmp_path, tmp_path, False, PORTS, Path(sys.executable), "standin")
    return KIND.command(own)


def test_the_launcher_gets_the_lighthouse_and_the_script(tmp_path: Path) -> None:
    options = {"min_groups": 2, "join_timeout": "2s", "heartbeat_timeout": "500ms", "timeout": "10s"}
    made = command(tmp_path, torchft=options, restart_limit=2, arguments=["--steps=12"])
    assert json.loads(made.argv[2]) == {
        "groups": 3,
        "restarts": 2,
        "min_groups": 2,
        "join_timeout": 2000,
        "heartbeat_timeout": 500,
        "ports": [5000, 5001, 5002, 5003],
    }
    assert made.argv[3:] == (sys.executable, str(tmp_path / "train.py"), "--steps=12")
    assert made.environment["TORCHFT_TIMEOUT_SEC"] == made.environment["TORCHFT_QUORUM_TIMEOUT_SEC"] == "10"
    assert made.environment["GLOO_SOCKET_IFNAME"] == "lo"
    assert made.environment["CHAOS_RANKS"] == "REPLICA_GROUP_ID/NUM_REPLICA_GROUPS"


def test_the_lighthouse_is_found_by_its_environment() -> None:
    """The launcher is a program of the standard library alone, so it has the names of the harness once more."""
    assert replica_groups.ROLE_VARIABLE == ROLE_VARIABLE
    assert claim_of({VARIABLE: "RANK/", ROLE_VARIABLE: replica_groups.LIGHTHOUSE}) == ("lighthouse", None)
    assert KIND.traits.coordinators == {replica_groups.LIGHTHOUSE} <= set(BESIDE)
    assert set(BESIDE) == set(BESIDE_RANKS)


def test_what_starts_groups_again_is_named_as_simulated() -> None:
    (part,) = KIND.simulated(scenario(), "standin")
    assert part.layer == "scheduler"


class Machine:
    """A machine with some packages."""

    def __init__(self, **versions: str) -> None:
        self._versions = versions

    def version(self, package: str) -> str | None:
        return self._versions.get(package.replace("-", "_"))


@pytest.mark.parametrize(
    ("versions", "sound"),
    [
        ({}, False),
        ({"torchft": "0.2.0"}, True),
        ({"torchft_nightly": "2026.10.26"}, True),
        ({"torchft": "0.1.1"}, False),
    ],
)
def test_a_machine_without_a_supported_torchft_is_named(versions: dict[str, str], sound: bool) -> None:
    probe: Any = torchft
    assert probe(Machine(**versions)).ok is sound


@pytest.fixture
def lighthouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the lighthouse's place, which waits until it is ended."""
    program = tmp_path / "lighthouse.py"
    program.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(replica_groups, "_LIGHTHOUSE_PROGRAM", str(program))
    return program


def run(tmp_path: Path, script: str, restarts: int) -> tuple[int, list[str]]:
    """Run two groups by a script; return the launcher's exit code and what the groups wrote, in order of the names."""
    path = tmp_path / "group.py"
    path.write_text(script)
    options = replica_groups.Options(2, restarts, 1, 1000, 1000, (5000, 5001, 5002))
    code = replica_groups.ReplicaGroups(options, [sys.executable, str(path), str(tmp_path)]).run()
    return code, sorted(file.name for file in tmp_path.glob("start-*"))


FAILS = """\
import os, pathlib, sys
group, directory = os.environ["REPLICA_GROUP_ID"], pathlib.Path(sys.argv[1])
number = len(list(directory.glob(f"start-{group}-*")))
(directory / f"start-{group}-{number}").write_text(os.environ["MASTER_PORT"] + os.environ["TORCHFT_LIGHTHOUSE"])
sys.exit(1 if group == "1" and number < FAILURES else 0)
"""


@pytest.mark.usefixtures("lighthouse")
def test_a_failed_group_alone_is_started_again(tmp_path: Path) -> None:
    code, starts = run(tmp_path, FAILS.replace("FAILURES", "1"), restarts=3)
    assert (code, starts) == (0, ["start-0-0", "start-1-0", "start-1-1"])
    assert (tmp_path / "start-1-1").read_text() == "5002http://127.0.0.1:5000"


@pytest.mark.usefixtures("lighthouse")
def test_a_group_without_restarts_left_is_given_up(tmp_path: Path) -> None:
    code, starts = run(tmp_path, FAILS.replace("FAILURES", "9"), restarts=2)
    assert (code, starts) == (1, ["start-0-0", "start-1-0", "start-1-1", "start-1-2"])


def test_without_a_lighthouse_no_group_is_started_again(tmp_path: Path, lighthouse: Path) -> None:
    lighthouse.write_text("")
    waits = "import time\ntime.sleep(3)\n" + FAILS.replace("FAILURES", "9")
    code, starts = run(tmp_path, waits, restarts=2)
    assert (code, starts) == (1, ["start-0-0", "start-1-0"])
