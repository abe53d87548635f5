"""``job.command``: the words of a launcher of the user's own, with the command of a rank behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chaos.agent.launcher.rank_variables import VARIABLE
from chaos.jobs.kind import JobError, Launch, job_kind
from chaos.jobs.own_launcher import check_command, own_argv, own_digests, rank_environment
from chaos.machine.job.protocol import Place
from chaos.run.prepare.needs import needs_of_job, needs_of_scenario
from chaos.scenario.models.scenario import Scenario


def launch(directory: Path, place: Place | None = None, **job: Any) -> Launch:
    described = {"chaos": 1, "name": "own", "cluster": {"ranks": 4}, "job": {"steps": 5, **job}}
    scenario = Scenario.model_validate(described)
    logs = directory / "logs"
    return Launch(scenario, directory, directory, logs, True, (1, 2), Path("/bin/python"), "standin", place)


def test_the_command_of_a_rank_follows_the_words(tmp_path: Path) -> None:
    (tmp_path / "start.sh").write_text("exec mpirun $@")
    given = launch(tmp_path, command=["bash", "start.sh", "-n", "{ranks}", "--at={master}:{port}", "{logs}"])
    words = own_argv(given, ("python", "train.py"), port=7)
    start, logs = str(tmp_path / "start.sh"), str(tmp_path / "logs")
    assert words == ("bash", start, "-n", "4", "--at=127.0.0.1:7", logs, "python", "train.py")


def test_each_node_gets_its_own_part(tmp_path: Path) -> None:
    place = Place(1, 2, (2, 3), 4, "10.0.0.2", "10.0.0.1", tmp_path)
    given = launch(tmp_path, place, command=["go", "{node}/{nodes}", "{first_rank}", "{local_ranks}", "{master}"])
    assert own_argv(given, (), port=7) == ("go", "1/2", "2", "2", "10.0.0.1")


def test_a_place_that_nothing_fills_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"job\.command: \{rank\} is filled by nothing; known are ranks, "):
        check_command(launch(tmp_path, command=["go", "{rank}"]).scenario.job)


def test_the_launch_names_the_variables(tmp_path: Path) -> None:
    assert rank_environment(launch(tmp_path).scenario.job) == {}
    named = launch(tmp_path, command=["go"], rank_variables={"MY_RANK": "MY_SIZE"}).scenario.job
    assert rank_environment(named) == {VARIABLE: "MY_RANK/MY_SIZE"}
    assert "RANK/WORLD_SIZE" in rank_environment(launch(tmp_path, command=["go"]).scenario.job)[VARIABLE]


def test_another_content_of_the_launcher_is_another_baseline(tmp_path: Path) -> None:
    job = launch(tmp_path, command=["sh", "start.sh", "/bin/sh"]).scenario.job
    assert own_digests(job, tmp_path) == {}
    (tmp_path / "start.sh").write_text("one")
    one = own_digests(job, tmp_path)
    (tmp_path / "start.sh").write_text("other")
    assert one.keys() == own_digests(job, tmp_path).keys() == {"launcher start.sh"}
    assert one != own_digests(job, tmp_path)


def test_a_script_of_mindspore_starts_below_it_and_needs_no_msrun(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    given = launch(
        tmp_path, kind="mindspore", script="train.py", command=["go"], arguments=["--a"], resume_arguments=["--resume"]
    )
    kind = job_kind("mindspore")
    command = kind.command(given)
    assert command.argv == ("go", "/bin/python", str(tmp_path / "train.py"), "--a", "--resume")
    assert VARIABLE in command.environment
    assert "msrun" not in kind.needs_for(given.scenario)
    assert "msrun" in kind.needs_for(launch(tmp_path, kind="mindspore").scenario)


@pytest.mark.parametrize(
    ("content", "command", "needed"),
    [
        ("import numpy  # no MindSpore", ["go"], False),
        ("import numpy", None, True),
        ("import mindspore", ["go"], True),
        ("from mindformers import x", ["go"], True),
    ],
)
@pytest.mark.parametrize("place", ["train.py", "module.py", "package/deep/part.py"])
def test_a_script_without_mindspore_under_its_own_launcher_needs_no_mindspore(
    tmp_path: Path, place: str, content: str, command: list[str] | None, needed: bool
) -> None:
    for name in ("train.py", "package/__init__.py", place):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content if name == place else "")
    scenario = launch(tmp_path, kind="mindspore", script="train.py", command=command).scenario
    assert ("mindspore" in needs_of_scenario(scenario, beside=tmp_path)) is needed
    assert ("mindspore" in needs_of_job(scenario, beside=tmp_path)) is needed
    assert "mindspore" in needs_of_job(scenario), "without its files nothing is known"


def test_a_script_that_cannot_be_read_may_need_mindspore(tmp_path: Path) -> None:
    scenario = launch(tmp_path, kind="mindspore", script="train.py", command=["go"]).scenario
    assert "mindspore" in needs_of_job(scenario, beside=tmp_path)
