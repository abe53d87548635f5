"""The cluster's agent in torchrun's place: it starts single ranks again, and says how the job ends."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.rehearsal.taskd import settings
from chaos.rehearsal.taskd.workers import FUNCTIONS
from chaos.rehearsal.torch import taskd_torchrun
from chaos.rehearsal.torch.taskd_torchrun import TorchWorkers, run_ranks


class Process:
    """A rank's process."""

    def __init__(self, pid: int, status: int | None = None) -> None:
        self.pid = pid
        self.status = status

    def poll(self) -> int | None:
        return self.status

    def kill(self) -> None:
        self.status = -9


class TorchrunAgent:
    """torchrun's agent, with the parts that the cluster's asks for; ``more`` are those of some releases only."""

    def __init__(self, **more: Any) -> None:
        self._more = more
        self._worker_group = SimpleNamespace(workers=[SimpleNamespace(global_rank=rank) for rank in range(2)])
        self._pcontext: Any = None

    def _initialize_workers(self, group: Any) -> None:
        assert group is self._worker_group
        self._pcontext = SimpleNamespace(
            entrypoint="python",
            args=dict.fromkeys(range(2), ("train.py",)),
            envs={rank: {"RANK": str(rank)} for rank in range(2)},
            stdouts=["", ""],
            stderrs=["", ""],
            **self._more,
            subprocess_handlers={rank: SimpleNamespace(proc=Process(100 + rank)) for rank in range(2)},
        )


Given = dict[str, Any]
ALWAYS = {"entrypoint", "args", "env", "stdout", "stderr"}


class Starts:
    """The starts of single ranks, in place of torchrun's module, by the calls of its releases."""

    def __init__(self) -> None:
        self.given: list[Given] = []

    def in_2_1(self, entrypoint: str, args: Any, env: Given, stdout: str, stderr: str) -> Any:
        return self._note(entrypoint=entrypoint, args=args, env=env, stdout=stdout, stderr=stderr)

    def in_2_7(self, entrypoint: str, args: Any, env: Given, stdout: str, stderr: str, local_rank_id: int) -> Any:
        known = {"entrypoint": entrypoint, "args": args, "env": env, "stdout": stdout, "stderr": stderr}
        return self._note(**known, local_rank_id=local_rank_id)

    def in_2_13(
        self,
        entrypoint: str,
        args: Any,
        env: Given,
        stdout: str,
        stderr: str,
        local_rank_id: int,
        numa_options: Any = None,
    ) -> Any:
        known = {"entrypoint": entrypoint, "args": args, "env": env, "stdout": stdout, "stderr": stderr}
        return self._note(**known, local_rank_id=local_rank_id, numa_options=numa_options)

    def _note(self, **given: Any) -> Any:
        self.given.append(given)
        return SimpleNamespace(proc=Process(200 + int(given["env"]["RANK"])))


def test_it_has_every_function_that_the_agent_asks_for() -> None:
    assert TorchWorkers(TorchrunAgent()).functions().keys() == set(FUNCTIONS)


@pytest.mark.parametrize(
    ("release", "more", "given"),
    [
        ("2.1", {}, set()),
        ("2.7", {}, {"local_rank_id"}),
        ("2.13", {"_numa_options": "near"}, {"local_rank_id", "numa_options"}),
    ],
)
def test_a_lost_rank_alone_is_started_again_by_each_release(
    monkeypatch: pytest.MonkeyPatch, release: str, more: Given, given: set[str]
) -> None:
    starts = Starts()
    module = SimpleNamespace(SubprocessHandler=starts.in_2_1)
    if release != "2.1":
        module.get_subprocess_handler = starts.in_2_7 if release == "2.7" else starts.in_2_13
    monkeypatch.setitem(sys.modules, taskd_torchrun._PROCESSES, module)
    workers = TorchWorkers(TorchrunAgent(**more))
    assert workers.monitor([-1]) == {}
    assert workers.start_all() == 0
    workers.kill([101])
    assert workers.monitor([-1]) == {0: {"pid": 100, "status": None}, 1: {"pid": 101, "status": -9}}
    assert workers.start_again([1]) == 0
    (start,) = starts.given
    assert (start["env"], start["args"]) == ({"RANK": "1"}, ("train.py",))
    assert start.keys() == ALWAYS | given
    assert start.get("numa_options") == more.get("_numa_options")
    assert workers.monitor([-1]) == {0: {"pid": 100, "status": None}, 1: {"pid": 201, "status": None}}
    workers.kill([-1])
    assert [worker["status"] for worker in workers.monitor([-1]).values()] == [-9, -9]


class Controlled:
    """The cluster's agent, with the end that a test gives it."""

    code = 0

    def __init__(self, read: Any) -> None:
        self.functions: set[str] = set()

    def register(self, name: str, function: Any) -> None:
        self.functions.add(name)

    def run(self) -> int:
        assert self.functions == set(FUNCTIONS)
        return self.code


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {settings.RANKS: "2", settings.NODES: "1", settings.RESTART_LIMIT: "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MS_ENABLE_TFT", raising=False)
    result = SimpleNamespace(RunResult=SimpleNamespace, WorkerState=SimpleNamespace(SUCCEEDED="succeeded"))
    monkeypatch.setitem(sys.modules, taskd_torchrun._API, result)


@pytest.mark.usefixtures("environment")
def test_torchrun_succeeds_where_the_agent_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taskd_torchrun, "ClusterAgent", Controlled)
    result = run_ranks(TorchrunAgent())
    assert (result.state, result.return_values, result.failures) == ("succeeded", {0: None, 1: None}, {})


@pytest.mark.usefixtures("environment")
def test_torchrun_fails_where_the_agent_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taskd_torchrun, "ClusterAgent", type("Failed", (Controlled,), {"code": 1}))
    with pytest.raises(SystemExit) as ended:
        run_ranks(TorchrunAgent())
    assert ended.value.code == 1


def test_an_agent_without_settings_ends_the_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.RANKS, raising=False)
    with pytest.raises(SystemExit, match="the cluster agent cannot start"):
        run_ranks(TorchrunAgent())
