"""Every file that a job saves and loads by PyTorch is recorded, under the name that the job publishes it by."""

from __future__ import annotations

import io
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from chaos.agent.barriers import Barriers
from chaos.agent.digests import Digests
from chaos.agent.record import Record
from chaos.agent.torch.files import Files, hook_names, hook_torch_files, step_of
from chaos.agent.training import Training
from tests.unit.agent.conftest import Events


class Writer:
    """PyTorch's writer of one file."""

    def __init__(self, written: list[str]) -> None:
        self.written = written

    def write_record(self, name: str) -> None:
        self.written.append(name)

    def write_end_of_file(self) -> None:
        self.written.append("end")


def serialization() -> Any:
    """Return a module like ``torch.serialization``: two members in each file."""
    module: Any = ModuleType("torch.serialization")
    module.written = []

    def _save(obj: Any, zip_file: Any) -> None:
        zip_file.write_record("data.pkl")
        zip_file.write_record("data/0")
        zip_file.write_end_of_file()

    def save(obj: Any, f: Any) -> None:
        module._save(obj, Writer(module.written))
        if isinstance(f, (str, os.PathLike)):
            Path(f).write_text(str(obj))

    module._save, module.save = _save, save
    module.load = lambda f: {"step": 4, "model": {}}
    return module


@pytest.fixture
def training(record: Record) -> Training:
    armed = [{"step": 0, "phase": "checkpoint.write", "fault": "in-the-middle"}]
    return Training(record, Barriers(record, None, armed), Digests(record, 0))


@pytest.fixture
def torch(training: Training, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, getattr(os, name))  # put back afterwards
    module, files = serialization(), Files(training)
    hook_torch_files(files, module)
    hook_names(files)
    return module


def paths(events: Events, name: str) -> list[str]:
    return [Path(event.data["path"]).name for event in events(name)]


def test_a_save_has_a_begin_an_end_and_a_barrier_within(torch: Any, tmp_path: Path, events: Events) -> None:
    torch.save("state", tmp_path / "a.pt")
    assert torch.written == ["data.pkl", "data/0", "end"]
    assert paths(events, "checkpoint.begin") == paths(events, "checkpoint.end") == ["a.pt"]
    assert [event.data["phase"] for event in events("barrier.reached")] == ["checkpoint.write"]


def test_an_open_file_has_a_name_and_a_buffer_has_none(torch: Any, tmp_path: Path, events: Events) -> None:
    torch.save("state", io.BytesIO())
    assert events("checkpoint.begin") == []
    with (tmp_path / "open.pt").open("wb") as file:
        torch.save("state", file)
    assert paths(events, "checkpoint.end") == ["open.pt"]


def test_a_load_is_recorded_with_the_step_that_it_says(
    torch: Any, training: Training, tmp_path: Path, events: Events
) -> None:
    torch.load(tmp_path / "a.pt")
    assert paths(events, "load.end") == ["a.pt"]
    assert training.loaded_step == 4


def test_a_load_from_a_buffer_is_not_recorded_and_is_a_load_all_the_same(
    torch: Any, training: Training, events: Events
) -> None:
    assert not training.has_loaded
    torch.load(io.BytesIO())
    assert events("load.begin") == []
    assert (training.has_loaded, training.loaded_step) == (True, 4)


@pytest.mark.parametrize("rename", ["os.replace", "os.rename", "pathlib"])
def test_a_save_gets_the_name_that_the_job_publishes_it_by(
    torch: Any, tmp_path: Path, events: Events, rename: str
) -> None:
    written, published = tmp_path / "a.tmp", tmp_path / "a.pt"
    for _ in range(2):
        torch.save("state", written)
        if rename == "pathlib":
            written.rename(published)
        else:
            getattr(os, rename.partition(".")[2])(written, published)
    assert paths(events, "checkpoint.end") == ["a.pt", "a.pt"]
    assert [event.data["written_as"] for event in events("checkpoint.end")] == [str(written)] * 2


def test_a_renamed_directory_takes_its_files_along(torch: Any, tmp_path: Path, events: Events) -> None:
    (tmp_path / "unfinished").mkdir()
    torch.save("state", tmp_path / "unfinished" / "rank-0.pt")
    (tmp_path / "unfinished").rename(tmp_path / "step-4")
    (tmp_path / "step-4").rename(tmp_path / "latest")
    (save,) = events("checkpoint.end")
    assert save.data["path"] == str(tmp_path / "latest" / "rank-0.pt")


def test_other_files_may_be_renamed_and_are_not_recorded(torch: Any, tmp_path: Path, events: Events) -> None:
    (tmp_path / "notes").write_text("")
    (tmp_path / "notes").rename(tmp_path / "notes.txt")
    assert events("checkpoint.renamed") == []


@pytest.mark.parametrize(
    ("loaded", "step"),
    [({"step": 4}, 4), ({"iteration": 8, "model": {}}, 8), ({"epoch": 2}, None), ({"step": True}, None), ([4], None)],
)
def test_the_step_of_a_checkpoint_is_a_whole_number_of_a_known_name(loaded: Any, step: int | None) -> None:
    assert step_of(loaded) == step
