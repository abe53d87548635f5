"""A directory of ``torch.distributed.checkpoint`` is one checkpoint of every rank, under its last name."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests
from chaos.agent.record import Record
from chaos.agent.torch.dcp import directory_of, hook_dcp_loads, hook_dcp_saves
from chaos.agent.torch.files import Files, hook_names, hook_torch_files
from chaos.agent.training import Training
from tests.unit.agent.conftest import Events
from tests.unit.agent.torch.test_torch_saves_and_loads import serialization


class Broken(Exception):
    """A save that does not come to its end."""


def module(name: str) -> Any:
    return ModuleType(name)


class Dcp:
    """The two modules of ``torch.distributed.checkpoint``, hooked, over a ``torch.save`` that is hooked as well."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.torch = serialization()
        hook_torch_files(files, self.torch)
        hook_names(files)
        self.saver, self.loader = module("state_dict_saver"), module("state_dict_loader")
        self.saver.save, self.saver.async_save = self._save, self._async_save
        self.loader.load = self._load
        self.workers = ThreadPoolExecutor(1)
        hook_dcp_saves(files, self.saver)
        hook_dcp_loads(files, self.loader)

    def _save(self, state: dict[str, Any], *, checkpoint_id: Path, **options: Any) -> str:
        checkpoint_id.mkdir(exist_ok=True)
        for item in state:
            with (checkpoint_id / "__3_0.distcp").open("ab") as part:
                self.torch.save(item, part)
        if "broken" in state:
            raise Broken
        return "metadata"

    def _async_save(self, state: dict[str, Any], **options: Any) -> Future[str]:
        return self.workers.submit(lambda: self.saver.save(state, **options))

    def _load(self, state: dict[str, Any], *, checkpoint_id: Path) -> None:
        with (checkpoint_id / "__3_0.distcp").open("rb") as part:
            self.torch.load(part)
        state["step"] = 8


@pytest.fixture
def training(record: Record) -> Training:
    return Training(
        record,
        Barriers(record, None, [{"step": 0, "phase": "checkpoint.write", "fault": "middle"}]),
        Digests(record, 0),
    )


@pytest.fixture
def dcp(training: Training, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, getattr(os, name))  # put back afterwards
    return Dcp(Files(training))


def names(events: Events) -> list[tuple[str, str]]:
    saves = [event for event in events() if event.event.startswith(("checkpoint.", "load."))]
    return [(event.event, Path(event.data["path"]).name) for event in saves]


def test_the_directory_is_saved_once_with_a_barrier_within_and_its_items_are_no_saves(
    dcp: Dcp, tmp_path: Path, events: Events
) -> None:
    assert dcp.saver.save({"model": 1, "step": 2}, checkpoint_id=tmp_path / "step-4") == "metadata"
    assert names(events) == [("checkpoint.begin", "step-4"), ("checkpoint.end", "step-4")]
    order = [event.event for event in events() if event.event.startswith(("checkpoint.", "barrier.reached"))]
    assert order == ["checkpoint.begin", "barrier.reached", "checkpoint.end"]


def test_a_save_that_breaks_off_has_no_end_and_later_files_are_saves_again(
    dcp: Dcp, tmp_path: Path, events: Events
) -> None:
    with pytest.raises(Broken):
        dcp.saver.save({"broken": 1}, checkpoint_id=tmp_path / "step-4")
    dcp.torch.save("state", tmp_path / "step-4" / "extra.pt")
    assert names(events) == [
        ("checkpoint.begin", "step-4"),
        ("checkpoint.begin", "extra.pt"),
        ("checkpoint.end", "extra.pt"),
    ]


def test_a_load_has_the_step_that_was_read_into_the_state(
    dcp: Dcp, training: Training, tmp_path: Path, events: Events
) -> None:
    dcp.saver.save({"step": 8}, checkpoint_id=tmp_path / "step-8")
    assert dcp.loader.load(state := {"step": 0}, checkpoint_id=tmp_path / "step-8") is None
    assert names(events)[2:] == [("load.begin", "step-8"), ("load.end", "step-8")]
    assert training.loaded_step == state["step"] == 8


def test_a_renamed_directory_is_known_by_its_last_name(dcp: Dcp, tmp_path: Path, events: Events) -> None:
    dcp.saver.save({"step": 4}, checkpoint_id=tmp_path / "step-4.tmp")
    (tmp_path / "step-4.tmp").rename(tmp_path / "step-4")
    assert [event.data["path"] for event in events("checkpoint.end")] == [str(tmp_path / "step-4")]


def test_a_save_in_the_background_has_its_end_when_it_is_written(dcp: Dcp, tmp_path: Path, events: Events) -> None:
    future = dcp.saver.async_save({"step": 4}, checkpoint_id=tmp_path / "step-4")
    dcp.workers.shutdown(wait=True)
    assert future.result() == "metadata"
    (written,) = events("checkpoint.written")
    assert (written.data["ok"], written.data["background"], written.data["asynchronous"]) == (True, True, True)
    assert events("barrier.reached") == [], "no step of the training comes to a barrier in another thread"


def test_a_save_in_the_background_that_fails_is_recorded_so(dcp: Dcp, tmp_path: Path, events: Events) -> None:
    future = dcp.saver.async_save({"broken": 4}, checkpoint_id=tmp_path / "step-4")
    dcp.workers.shutdown(wait=True)
    assert isinstance(future.exception(), Broken)
    assert [event.data["ok"] for event in events("checkpoint.written")] == [False]


def test_a_save_that_another_process_writes_ends_with_its_future(dcp: Dcp, tmp_path: Path, events: Events) -> None:
    future: Future[str] = Future()
    saver = module("state_dict_saver")
    saver.async_save = lambda state, **options: SimpleNamespace(upload_completion=future)
    hook_dcp_saves(dcp.files, saver)
    saver.async_save({}, checkpoint_id=tmp_path / "step-4")
    assert events("checkpoint.written") == []
    future.set_result("metadata")
    assert [event.data["ok"] for event in events("checkpoint.written")] == [True]


class FileSystemWriter:
    path = Path("/saved/step-4")


class HuggingFaceStorageWriter(FileSystemWriter):
    pass


@pytest.mark.parametrize(
    ("args", "kwargs", "directory"),
    [
        (({},), {"checkpoint_id": "/saved/step-8"}, "/saved/step-8"),
        (({}, FileSystemWriter()), {}, "/saved/step-4"),
        (({},), {"storage_writer": FileSystemWriter(), "checkpoint_id": "/saved/step-8"}, "/saved/step-8"),
        (({},), {"storage_writer": HuggingFaceStorageWriter()}, None),
        (({},), {"checkpoint_id": "s3://bucket/step-8"}, None),
        (({},), {}, None),
    ],
)
def test_the_directory_is_the_one_that_the_call_or_its_storage_names(
    args: Any, kwargs: Any, directory: str | None
) -> None:
    assert directory_of(args, kwargs, "storage_writer") == directory


def test_a_save_without_a_common_file_of_metadata_is_not_recorded(dcp: Dcp, tmp_path: Path, events: Events) -> None:
    dcp.saver.save({}, checkpoint_id=tmp_path / "step-4", use_collectives=False)
    assert names(events) == []
