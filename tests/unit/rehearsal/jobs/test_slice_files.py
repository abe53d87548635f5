"""A rank of the sliced job starts from the newest step of which every rank has a file, its own or a replica's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from google.protobuf.message import DecodeError

from chaos.observe.checkpoints.group_info import read_group_info
from chaos.rehearsal.jobs.slice_files import find_slice
from tests.kit.runs.restored_run import group_info

GROUPS = {0: (0, 2), 1: (1, 3), 2: (0, 2), 3: (1, 3)}

Save = Callable[..., None]


class _Checkpoint:
    """MindSpore's message, of files that hold nothing but their step in decimals."""

    def __init__(self) -> None:
        self.value: list[SimpleNamespace] = []

    def ParseFromString(self, raw: bytes) -> None:
        if not raw.isdigit():
            raise DecodeError("not a checkpoint")
        tensor = SimpleNamespace(tensor_content=int(raw).to_bytes(4, "little"))
        self.value = [SimpleNamespace(tag="moments.weight"), SimpleNamespace(tag="global_step", tensor=tensor)]


@pytest.fixture(autouse=True)
def mindspore(monkeypatch: pytest.MonkeyPatch) -> None:
    """MindSpore's own reader of group_info.pb, by the one of this project."""
    module, messages = ModuleType("mindspore"), ModuleType("mindspore.train.checkpoint_pb2")
    messages.Checkpoint = _Checkpoint  # type: ignore[attr-defined]
    module.restore_group_info_list = lambda path: list(read_group_info(Path(path)).restore_ranks)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mindspore", module)
    monkeypatch.setitem(sys.modules, "mindspore.train", ModuleType("mindspore.train"))
    monkeypatch.setitem(sys.modules, "mindspore.train.checkpoint_pb2", messages)


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Saves a rank's periodic checkpoints of some steps, and tells who its replicas are."""

    def save(rank: int, *steps: int, told: bool = True) -> None:
        directory = tmp_path / f"rank_{rank}"
        directory.mkdir()
        for step in steps:
            (directory / f"sliced-9_{step}.ckpt").write_text(str(step))
        if told:
            (directory / "group_info.pb").write_bytes(group_info(*GROUPS[rank]))

    return save


def found(directory: Path, rank: int) -> str:
    path = find_slice(str(directory), rank, 4, GROUPS[rank])
    assert path is not None
    return str(Path(path).relative_to(directory))


def test_each_rank_takes_its_own_newest_file(tmp_path: Path, save: Save) -> None:
    for rank in range(4):
        save(rank, 3, 6)
    assert [found(tmp_path, rank) for rank in range(4)] == [f"rank_{rank}/sliced-9_6.ckpt" for rank in range(4)]


def test_a_rank_without_a_directory_takes_its_replicas_file(tmp_path: Path, save: Save) -> None:
    for rank in (0, 1, 3):
        save(rank, 3, 6)
    assert [found(tmp_path, rank) for rank in range(4)] == [f"rank_{rank}/sliced-9_6.ckpt" for rank in (0, 1, 0, 3)]


def test_all_ranks_come_to_the_same_step(tmp_path: Path, save: Save) -> None:
    save(0, 3, 6)
    save(1, 3)  # the next one was being saved
    save(2, 3, 6)
    save(3, 3)
    assert {found(tmp_path, rank).partition("/")[2] for rank in range(4)} == {"sliced-9_3.ckpt"}


def test_nobody_but_group_info_says_who_is_a_replica(tmp_path: Path, save: Save) -> None:
    for rank in (0, 1, 3):
        save(rank, 3, told=rank != 0)
    assert find_slice(str(tmp_path), 2, 4, GROUPS[2]) is None


def test_when_every_replica_has_lost_its_files_there_is_nothing(tmp_path: Path, save: Save) -> None:
    for rank in (1, 3):
        save(rank, 3, 6)
    for rank in range(4):
        assert find_slice(str(tmp_path), rank, 4, GROUPS[rank]) is None


def test_the_step_inside_counts_whatever_the_name_says(tmp_path: Path, save: Save) -> None:
    for rank in range(4):
        save(rank, 6)
        (tmp_path / f"rank_{rank}" / "sliced_1-1_4.ckpt").write_text("12")  # saved after a resume at step 8
    assert found(tmp_path, 3) == "rank_3/sliced_1-1_4.ckpt"


def test_a_damaged_file_is_lost_too(tmp_path: Path, save: Save) -> None:
    for rank in range(4):
        save(rank, 3)
    (tmp_path / "rank_1" / "sliced-9_3.ckpt").write_text("half")
    assert found(tmp_path, 1) == "rank_3/sliced-9_3.ckpt"


def test_a_finished_end_of_life_checkpoint_wins_where_it_is_newer(tmp_path: Path, save: Save) -> None:
    for rank in range(4):
        save(rank, 4)
    for step, ending in ((5, ""), (7, "_tmp")):
        for rank in (0, 3):
            directory = tmp_path / f"ttp_saved_checkpoints-step_{step}{ending}" / f"rank_{rank}"
            directory.mkdir(parents=True)
            (directory / f"ttp_rank_{rank}-2_1.ckpt").touch()
    expected = {
        rank: f"ttp_saved_checkpoints-step_5/rank_{saver}/ttp_rank_{saver}-2_1.ckpt"
        for rank, saver in ((0, 0), (1, 3), (2, 0), (3, 3))
    }
    assert {rank: found(tmp_path, rank) for rank in range(4)} == expected
