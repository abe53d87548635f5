"""Storage of a stated throughput, and the store that keeps the latest checkpoint in memory."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.agent.after_import import AfterImport
from chaos.agent.configuration import Configuration, Place
from chaos.agent.record import Record
from chaos.agent.start import Agent
from chaos.history.reader import read_history
from chaos.rehearsal.acp.store import Store
from chaos.rehearsal.in_rank import storage
from chaos.rehearsal.in_rank.storage import PacedFile, create, open_recorded

CONTENT = bytes(range(256)) * 400


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    (tmp_path / "memory").mkdir()
    return tmp_path / "memory"


def write(store: Store, path: Path, content: bytes = CONTENT) -> None:
    with store.create(str(path)) as file:
        file.write(content[:1000])
        file.write(content[1000:])


def read(store: Store, path: Path) -> tuple[str, bytes]:
    with store.open(str(path)) as file:
        return file.source, file.read()


def test_reading_and_writing_take_the_stated_time(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for mode in ("wb", "rb"):
        began = time.monotonic()
        with PacedFile(path.open(mode), 1.0) as file:
            content = file.write(CONTENT) if mode == "wb" else file.read()
        assert time.monotonic() - began >= len(CONTENT) / 1e6
    assert content == CONTENT


def test_the_latest_file_is_read_from_memory_by_any_rank(tmp_path: Path, memory: Path) -> None:
    path = tmp_path / "a.ckpt"
    write(Store(str(memory), 0, None), path)
    assert path.read_bytes() == CONTENT
    assert read(Store(str(memory), 3, None), path) == ("memory", CONTENT)


def test_a_file_is_found_under_a_new_name_but_not_with_new_content(tmp_path: Path, memory: Path) -> None:
    store, directory = Store(str(memory), 0, None), tmp_path / "step_5_tmp"
    directory.mkdir()
    write(store, directory / "a.ckpt")
    directory.rename(tmp_path / "step_5")
    path = tmp_path / "step_5" / "a.ckpt"
    assert read(store, path)[0] == "memory"
    path.write_bytes(b"other")
    assert read(store, path) == ("storage", b"other")


def test_only_the_last_file_of_a_rank_is_kept(tmp_path: Path, memory: Path) -> None:
    store = Store(str(memory), 0, None)
    write(store, tmp_path / "a.ckpt")
    write(store, tmp_path / "b.ckpt", b"b" * 2000)
    assert read(store, tmp_path / "a.ckpt") == ("storage", CONTENT)
    assert read(store, tmp_path / "b.ckpt") == ("memory", b"b" * 2000)
    assert sorted(path.name for path in memory.iterdir()) == ["rank_0", "rank_0.json"]


def test_a_file_that_was_broken_off_is_nowhere(tmp_path: Path, memory: Path) -> None:
    store = Store(str(memory), 0, None)
    with pytest.raises(OSError, match="no space"), store.create(str(tmp_path / "a.ckpt")) as file:
        file.write(CONTENT)
        raise OSError("no space")
    assert not (tmp_path / "a.ckpt").exists()
    assert list(memory.iterdir()) == []


def test_storage_is_slow_where_memory_is_not(tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(storage, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=slept.append))
    path = tmp_path / "a.ckpt"
    slow = Store(str(memory), 0, 0.5)
    write(slow, path)
    slept.clear()
    assert read(slow, path)[0] == "memory"
    assert slept == []
    (memory / "rank_0.json").unlink()
    assert read(slow, path)[0] == "storage"
    assert slept == [len(CONTENT) / 0.5e6]


def test_a_job_of_its_own_kind_has_the_same_storage(tmp_path: Path) -> None:
    record = Record(str(tmp_path), run="run-1", attempt="train", rank=0)
    settings = {"storage": {"mb_per_second": 1.0}}
    configuration = Configuration("run-1", "train", str(tmp_path), settings=settings)
    agent = Agent(configuration, Place("rank", 0, 1), AfterImport(), record)
    path, began = str(tmp_path / "a.ckpt"), time.monotonic()
    with create(agent, path) as file:
        file.write(CONTENT)
    assert time.monotonic() - began >= len(CONTENT) / 1e6
    with open_recorded(agent, path) as file:
        assert file.read() == CONTENT
    assert time.monotonic() - began >= 2 * len(CONTENT) / 1e6
    (read,) = read_history(tmp_path).select("checkpoint.read")
    assert read.data == {"path": path, "backend": "basic", "source": "storage"}
