"""Every file that a job saves and loads by PyTorch is recorded, under the name that the job publishes it by."""

from __future__ import annotations

import io
import os
import shutil
import socket
import tempfile
from collections.abc import Callable
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
        elif isinstance(f, io.BytesIO):
            f.write(str(obj).encode())

    module._save, module.save = _save, save
    module.load = lambda f: {"step": 4, "model": {}}
    return module


@pytest.fixture
def training(record: Record) -> Training:
    armed = [{"step": 0, "phase": "checkpoint.write", "fault": "in-the-middle"}]
    return Training(record, Barriers(record, None, armed), Digests(record, 0))


@pytest.fixture
def files(training: Training) -> Files:
    return Files(training)


@pytest.fixture
def torch(files: Files, monkeypatch: pytest.MonkeyPatch) -> Any:
    for module, name in ((os, "rename"), (os, "replace"), (os, "link"), (shutil, "copyfile")):
        monkeypatch.setattr(module, name, getattr(module, name))  # put back afterwards
    hooked = serialization()
    hook_torch_files(files, hooked)
    hook_names(files)
    return hooked


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


def test_a_file_that_is_opened_by_its_descriptor_has_its_name(torch: Any, tmp_path: Path, events: Events) -> None:
    descriptor, name = tempfile.mkstemp(dir=tmp_path)
    with os.fdopen(descriptor, "wb") as file:
        torch.save("state", file)
    Path(name).replace(tmp_path / "a.pt")
    assert paths(events, "checkpoint.end") == ["a.pt"]
    with socket.socket() as other:
        torch.save("state", other.makefile("wb"))
    assert paths(events, "checkpoint.end") == ["a.pt"]


COPIES: dict[str, Callable[[Path, Path], object]] = {  # each is looked up when it is called: a hook is in its place
    "copy": lambda source, target: shutil.copy(source, target),
    "copyfile": lambda source, target: shutil.copyfile(source, target),
    "hard link": lambda source, target: os.link(source, target),
    "whole directory": lambda source, target: shutil.copytree(source.parent, target.parent),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_of_a_save_is_a_save_of_the_same_step(
    torch: Any, training: Training, tmp_path: Path, events: Events, way: str
) -> None:
    source, target = tmp_path / "saved" / "a.pt", tmp_path / "copies" / "a.pt"
    source.parent.mkdir()
    if way != "whole directory":
        target.parent.mkdir()
    training.step_begin(4)
    training.step_end(None, None)
    torch.save("state", source)
    training.step_begin(5)
    COPIES[way](source, target)
    for name in ("checkpoint.begin", "checkpoint.end"):
        saved, copied = events(name)
        assert (saved.data["path"], saved.data["step"]) == (str(source), 4)
        assert (copied.data["path"], copied.data["step"], copied.data["copy_of"]) == (str(target), 4, str(source))


def test_other_files_may_be_copied_and_are_not_recorded(torch: Any, tmp_path: Path, events: Events) -> None:
    (tmp_path / "notes").write_text("")
    shutil.copy(tmp_path / "notes", tmp_path / "notes.txt")
    assert events("checkpoint.begin") == []


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


def saved_in_memory(torch: Any, obj: str = "state") -> bytes:
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("move", ["rename", "replace", "move", "copyfile", "copy2"])
def test_a_save_in_memory_is_one_of_the_file_that_gets_its_bytes(
    torch: Any, tmp_path: Path, events: Events, move: str
) -> None:
    for step in (4, 8):
        (tmp_path / "part").write_bytes(saved_in_memory(torch, f"state of {step}"))
        getattr(os if move.startswith("re") else shutil, move)(tmp_path / "part", tmp_path / f"{step}.pt")
    assert paths(events, "checkpoint.begin") == paths(events, "checkpoint.end") == ["4.pt", "8.pt"]


def test_a_save_in_memory_that_is_named_later_has_the_step_of_its_state(
    torch: Any, training: Training, tmp_path: Path, events: Events
) -> None:
    (tmp_path / "part").write_bytes(saved_in_memory(torch))
    training.step_begin(1)
    (tmp_path / "part").rename(tmp_path / "a.pt")
    (save,) = events("checkpoint.end")
    assert (save.data["late"], save.data["step"], Path(save.data["path"]).name) == (True, 0, "a.pt")


def test_a_save_in_memory_has_the_last_name_of_its_file(torch: Any, tmp_path: Path, events: Events) -> None:
    (tmp_path / "part").write_bytes(saved_in_memory(torch))
    (tmp_path / "part").rename(tmp_path / "8.pt")
    (tmp_path / "8.pt").rename(tmp_path / "last.pt")
    assert paths(events, "checkpoint.end") == ["last.pt"]


def test_a_save_in_memory_may_be_written_under_its_last_name(
    torch: Any, training: Training, files: Files, tmp_path: Path, events: Events
) -> None:
    for step in (1, 2):
        training.step_begin(step)
        (tmp_path / f"{step}.pt").write_bytes(saved_in_memory(torch, f"state of {step}"))
        (tmp_path / "notes").write_text("no checkpoint")
    files.settle()
    assert [(Path(e.data["path"]).name, e.data["step"]) for e in events("checkpoint.end")] == [("1.pt", 1), ("2.pt", 2)]
    assert [event.event for event in events() if event.event in ("step.begin", "checkpoint.begin")] == [
        "step.begin",
        "checkpoint.begin",
        "step.begin",
        "checkpoint.begin",
    ]


def test_a_save_in_memory_begins_before_its_file_has_a_name(torch: Any, tmp_path: Path, events: Events) -> None:
    (tmp_path / "part").write_bytes(saved_in_memory(torch))
    with pytest.raises(FileNotFoundError):
        (tmp_path / "part").rename(tmp_path / "absent" / "a.pt")
    assert (paths(events, "checkpoint.begin"), paths(events, "checkpoint.end")) == (["a.pt"], [])


@pytest.mark.parametrize("content", ["other", "state and more", ""])
def test_a_file_with_other_bytes_is_no_save_in_memory(torch: Any, tmp_path: Path, events: Events, content: str) -> None:
    saved_in_memory(torch)
    (tmp_path / "part").write_text(content)
    (tmp_path / "part").rename(tmp_path / "a.pt")
    assert events("checkpoint.begin") == []


def test_of_many_saves_in_memory_the_last_ones_are_known(torch: Any, tmp_path: Path, events: Events) -> None:
    saves = [saved_in_memory(torch, str(number)) for number in range(20)]
    for number in (0, 19):
        (tmp_path / "part").write_bytes(saves[number])
        (tmp_path / "part").rename(tmp_path / f"{number}.pt")
    assert paths(events, "checkpoint.end") == ["19.pt"]


@pytest.mark.parametrize(
    ("loaded", "step"),
    [({"step": 4}, 4), ({"iteration": 8, "model": {}}, 8), ({"epoch": 2}, None), ({"step": True}, None), ([4], None)],
)
def test_the_step_of_a_checkpoint_is_a_whole_number_of_a_known_name(loaded: Any, step: int | None) -> None:
    assert step_of(loaded) == step
