"""What a scenario names and this machine does not have is told at once, with its line, before anything is started."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.cli import codes
from tests.unit.cli.kit import Ended

Call = Callable[..., Ended]

SCRIPT = """\
chaos: 1
name: own
cluster: {{ranks: 2}}
job:
  kind: {kind}
  steps: 4
  script: {script}
"""
COMMANDS = (("validate",), ("plan",), ("run",), ("soak", "--times", "1"))


def scenario(place: Path, text: str) -> str:
    path = place / "own.yaml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("kind", ["mindspore", "rehearsal"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one[0])
def test_a_script_that_is_not_there_is_64_with_its_line(
    chaos: Call, reports: Path, kind: str, command: tuple[str, ...]
) -> None:
    path = scenario(reports.parent, SCRIPT.format(kind=kind, script="train.py"))
    ended = chaos(command[0], path, *command[1:])
    assert ended.code == codes.USAGE
    assert f"{path}:7:" in ended.out + ended.err
    assert f"{reports.parent / 'train.py'}: there is no such file" in ended.out + ended.err
    assert not list(reports.glob("own*"))


@pytest.mark.parametrize(
    ("script", "said"),
    [("folder", "is a directory, and no file"), ("pipe", "is neither a plain file nor a directory")],
)
def test_what_is_no_file_is_no_script(chaos: Call, reports: Path, script: str, said: str) -> None:
    (reports.parent / "folder").mkdir()
    os.mkfifo(reports.parent / "pipe")
    ended = chaos("validate", scenario(reports.parent, SCRIPT.format(kind="mindspore", script=script)))
    assert (ended.code, said in ended.out) == (codes.USAGE, True)


def test_a_script_that_is_there_is_no_problem(chaos: Call, reports: Path) -> None:
    (reports.parent / "train.py").write_text("")
    assert chaos("validate", scenario(reports.parent, SCRIPT.format(kind="mindspore", script="train.py"))).code == 0
    # One of the kind's own, whatever lies beside the scenario.
    assert chaos("validate", scenario(reports.parent, SCRIPT.format(kind="rehearsal", script="mnist.py"))).code == 0


def test_a_directory_for_the_nodes_is_looked_for(chaos: Call, reports: Path) -> None:
    text = "chaos: 1\nname: own\ncluster:\n  ranks: 2\n  platform: docker\n  docker:\n    readable:\n      - /no/such\n"
    ended = chaos("validate", scenario(reports.parent, text + "job: {kind: plain, steps: 4}\n"))
    assert ended.code == codes.USAGE
    assert "own.yaml:8:" in ended.out and "/no/such: there is no such directory" in ended.out


def test_the_key_of_a_host_is_looked_for(chaos: Call, reports: Path) -> None:
    (reports.parent / "hosts.yaml").write_text("inventory: 1\nhosts:\n  - {name: a, address: l, key: id_none}\n")
    text = "chaos: 1\nname: own\ncluster:\n  ranks: 2\n  platform: ssh\n  ssh:\n    inventory: hosts.yaml\n"
    ended = chaos("validate", scenario(reports.parent, text + "job: {kind: plain, steps: 4}\n"))
    assert ended.code == codes.USAGE
    assert "own.yaml:7:" in ended.out and "host a: key file" in ended.out


def test_a_machine_that_lacks_something_is_no_failure_of_the_harness(
    chaos: Call, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = SimpleNamespace(ok=False, need="docker", seen="no engine answers", advice="start one")
    monkeypatch.setattr("chaos.run.driver.probe", lambda needs, machine: [missing])
    text = "chaos: 1\nname: own\ncluster: {ranks: 2}\njob: {kind: plain, steps: 4}\n"
    ended = chaos("run", scenario(reports.parent, text))
    assert ended.code == codes.USAGE
    assert "docker: no engine answers; start one" in ended.err and "harness" not in ended.err
    (cell,) = json.loads((reports / "summary.json").read_text())["cells"]
    assert (cell["verdict"], cell["refused"]) == (None, True)
