"""How a rehearsed job is started with what shortens its recovery, and what the report says of it."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from chaos.agent.configuration import Configuration
from chaos.rehearsal.in_rank import storage
from chaos.rehearsal.recovery_options import option_arguments, option_environment, option_path, simulated_options
from chaos.scenario.models.job import Job

PLAIN = Job(steps=8)


def job(**fields: Any) -> Job:
    return Job.model_validate({"steps": 8, **fields})


def test_a_job_without_recovery_options_is_started_as_ever(tmp_path: Path) -> None:
    assert option_arguments(PLAIN) == ()
    assert option_environment(PLAIN, tmp_path) == {"MS_JIT": "0"}
    assert option_path(PLAIN) == ()
    assert list(simulated_options(PLAIN)) == []


def test_a_compiled_job_keeps_its_graphs_where_the_next_launch_finds_them(tmp_path: Path) -> None:
    compiled = job(graph=True, compile_cache=True)
    assert option_arguments(compiled) == ("--graph=1",)
    environment = option_environment(compiled, tmp_path)
    assert "MS_JIT" not in environment
    assert environment["MS_COMPILER_CACHE_ENABLE"] == "1"
    assert environment["MS_COMPILER_CACHE_PATH"] == str(tmp_path / "compile_cache")
    assert environment["GLOG_v"] == "2"


def test_a_compiled_job_without_a_cache_has_none_of_its_machines_and_shows_warnings(tmp_path: Path) -> None:
    # Over what the machine's environment has: there may be a cache, and a level that hides the line about it.
    assert option_environment(job(graph=True), tmp_path) == {"MS_COMPILER_CACHE_ENABLE": "0", "GLOG_v": "2"}


@pytest.mark.parametrize(("watchdog", "said"), [(True, "watchdog poll 2 s to 0.02 s"), (False, "watchdog off")])
def test_scaled_times_are_stated(watchdog: bool, said: str) -> None:
    (part,) = simulated_options(job(hccl={"watchdog": watchdog}))
    assert "HCCL_EXEC_TIMEOUT 1800 s scaled by 0.01 to 18 s" in part.part
    assert said in part.part


def test_stand_ins_and_throttled_storage_are_stated() -> None:
    parts = [one.part for one in simulated_options(job(graph=True, storage={"memory": True, "mb_per_second": 0.5}))]
    assert [part.split()[0] for part in parts] == ["storage", "mindio_acp:", "gradient"]
    assert "0.5 MB/s" in parts[0]


class FileSystem:
    """MindSpore's holder of the functions that open checkpoint files."""

    create: Any = open
    open: Any = open
    backend = "basic"


def test_every_read_is_recorded_with_its_source(tmp_path: Path) -> None:
    written: list[tuple[str, dict[str, Any]]] = []
    hooks: dict[str, Any] = {}
    agent: Any = SimpleNamespace(
        place=SimpleNamespace(rank=1),
        record=SimpleNamespace(write=lambda event, **fields: written.append((event, fields))),
        configuration=SimpleNamespace(settings={"storage": {"mb_per_second": 100.0}}),
        imports=SimpleNamespace(watch=hooks.__setitem__),
    )
    module: Any = ModuleType("file_system")
    module._register_basic_file_system = lambda fs: True
    module._register_mindio_file_system = lambda fs: False
    storage.install(agent)
    hooks["mindspore.common.file_system"](module)
    fs: Any = FileSystem()
    assert module._register_mindio_file_system(fs) is False
    assert module._register_basic_file_system(fs) is True
    with fs.create(tmp_path / "a", "wb") as file:
        file.write(b"state")
    with fs.open(tmp_path / "a", "rb") as file:
        assert (type(file), file.read()) == (storage.PacedFile, b"state")
    expected = {"path": str(tmp_path / "a"), "backend": "basic", "source": "storage"}
    assert written == [("checkpoint.read", expected)]


class TestStandIn:
    """The package that MindSpore imports; what it does is the store's."""

    @pytest.fixture
    def acp(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.syspath_prepend(str(option_path(job(storage={"memory": True}))[0]))
        monkeypatch.delitem(sys.modules, "mindio_acp", raising=False)
        yield import_module("mindio_acp")
        sys.modules.pop("mindio_acp", None)

    def configure(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: str | None) -> None:
        settings = {"storage": {"memory": memory, "mb_per_second": None}}
        answer = Configuration("r", "train", str(tmp_path), settings=settings)
        (tmp_path / "agent.json").write_text(json.dumps(answer.__dict__))
        monkeypatch.setenv("CHAOS_AGENT", str(tmp_path / "agent.json"))
        monkeypatch.setenv("MS_ROLE", "MS_WORKER")
        monkeypatch.setenv("MS_NODE_ID", "3")

    def test_files_go_through_the_store(self, acp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "memory").mkdir()
        self.configure(tmp_path, monkeypatch, str(tmp_path / "memory"))
        assert acp.initialize(server_info={"memfs.data_block_pool_capacity_in_gb": "100"}) == 0
        with acp.create_file(str(tmp_path / "a.ckpt")) as file:
            file.write(b"state")
        with acp.open_file(str(tmp_path / "a.ckpt")) as file:
            assert (file.source, file.read()) == ("memory", b"state")
        assert (tmp_path / "memory" / "rank_3").read_bytes() == b"state"

    def test_without_a_store_it_says_that_it_cannot_be_used(
        self, acp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.configure(tmp_path, monkeypatch, None)
        assert acp.initialize() != 0
        with pytest.raises(RuntimeError, match="initialize"):
            acp.open_file("a.ckpt")
