"""The output of each rank under torchrun goes to a log of its own, and that of an earlier process is kept."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from chaos.agent.after_import import AfterImport
from chaos.agent.configuration import Configuration, Place
from chaos.agent.start import Agent
from chaos.agent.torch.rank_logs import install

PRINT = [sys.executable, "-c", "import os, sys; print(os.environ['WORD']); print('err', file=sys.stderr)"]


@pytest.fixture
def popen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return ``Popen`` of a launcher that gives its ranks logs in ``tmp_path``."""
    import subprocess

    class Popen(subprocess.Popen[bytes]):
        pass

    module: Any = ModuleType("subprocess")
    module.Popen, module.STDOUT = Popen, subprocess.STDOUT
    monkeypatch.setitem(sys.modules, "subprocess", module)
    settings = Configuration(run="run-1", attempt="train", history="", stacks=str(tmp_path))
    install(Agent(settings, Place("other", None, None), AfterImport()))
    return Popen


def run(popen: Callable[..., Any], word: str, **more: Any) -> None:
    environment = {"CHAOS_RANKS": "RANK/WORLD_SIZE", "RANK": "2", "WORLD_SIZE": "4", "WORD": word}
    assert popen(args=PRINT, env=environment, **more).wait() == 0


def test_the_log_of_an_earlier_process_is_kept_beside_the_new_one(popen: Any, tmp_path: Path) -> None:
    for word in ("first", "second", "third"):
        run(popen, word)
    logs = {path.name: set(path.read_text().split()) for path in tmp_path.iterdir()}
    assert logs == {
        "worker_2.before-1.log": {"first", "err"},
        "worker_2.before-2.log": {"second", "err"},
        "worker_2.log": {"third", "err"},
    }


def test_output_that_the_launcher_redirects_itself_stays_there(popen: Any, tmp_path: Path) -> None:
    with (tmp_path / "own.txt").open("wb") as file:
        run(popen, "word", stdout=file, stderr=DEVNULL)
    assert [path.name for path in tmp_path.iterdir()] == ["own.txt"]


def test_a_process_that_is_no_rank_has_no_log(popen: Any, tmp_path: Path) -> None:
    assert popen(args=PRINT, env={"WORD": "word"}, stdout=DEVNULL, stderr=DEVNULL).wait() == 0
    assert list(tmp_path.iterdir()) == []


def agents(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **where: Any) -> Any:
    """Return a launcher of torchrun that deletes the files of an earlier start with the same number, as it does."""

    class LocalElasticAgent:
        _remaining_restarts = 3

        def _start_workers(self, group: Any) -> str:
            directory = tmp_path / f"attempt_{group.spec.max_restarts - self._remaining_restarts}"
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
            (directory / "error.json").write_text(str(len(list(tmp_path.iterdir()))))
            return "started"

    module: Any = ModuleType("torch.distributed.elastic.agent.server.local_elastic_agent")
    module.LocalElasticAgent = LocalElasticAgent
    monkeypatch.setitem(sys.modules, module.__name__, module)
    launcher: Any = LocalElasticAgent()
    vars(launcher).update(where)
    return launcher


@pytest.mark.parametrize("release", ["2.1", "2.13"])
def test_the_files_of_an_earlier_start_with_the_same_number_are_kept(
    monkeypatch: pytest.MonkeyPatch, popen: Any, tmp_path: Path, release: str
) -> None:
    of_logs = SimpleNamespace(_run_log_dir=str(tmp_path))
    where = {"_log_dir": str(tmp_path)} if release == "2.1" else {"_logs_specs": of_logs}
    launcher = agents(monkeypatch, tmp_path, **where)
    settings = Configuration(run="run-1", attempt="train", history="", stacks=str(tmp_path))
    install(Agent(settings, Place("other", None, None), AfterImport()))
    group = SimpleNamespace(spec=SimpleNamespace(max_restarts=3))
    assert [launcher._start_workers(group) for _ in range(3)] == ["started"] * 3
    kept = {path.name: (path / "error.json").read_text() for path in tmp_path.iterdir()}
    assert kept == {"attempt_0.before-1": "1", "attempt_0.before-2": "2", "attempt_0": "3"}


def test_a_release_without_these_names_starts_its_ranks_all_the_same(
    monkeypatch: pytest.MonkeyPatch, popen: Any, tmp_path: Path
) -> None:
    launcher = agents(monkeypatch, tmp_path)
    settings = Configuration(run="run-1", attempt="train", history="", stacks=str(tmp_path))
    install(Agent(settings, Place("other", None, None), AfterImport()))
    assert launcher._start_workers(SimpleNamespace(spec=SimpleNamespace(max_restarts=3))) == "started"
