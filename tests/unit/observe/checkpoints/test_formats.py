"""A checkpoint file is read by the registered reader that recognises its content; an unknown format is unknown."""

from __future__ import annotations

import io
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from chaos.base.registry import NOUNS, Registry, RegistryError, installed_points
from chaos.observe.checkpoints import registered
from chaos.observe.checkpoints.checkpoint import CheckpointError, CheckpointNotSupported, read_checkpoint
from chaos.observe.checkpoints.checkpoint_reader import CheckpointReader
from chaos.observe.checkpoints.parsed import Parsed
from tests.unit.observe.ckpt_writer import CkptWriter

HERE = "tests.unit.observe.checkpoints.test_formats"


class Other(CheckpointReader):
    """A reader of another package; ``DEFECT`` makes it raise."""

    name, about = "other", "an example"

    def recognises(self, head: bytes, size: int) -> bool:
        if head.startswith(b"OTHER defect of recognises"):
            raise KeyError("no such thing")
        return head.startswith((b"OTHER", b"\x0a"))

    def read(self, path: Path, stream: io.BufferedReader, size: int) -> Parsed:
        if b"damaged" in stream.read():
            raise CheckpointError(path, "is damaged")
        if size > 20:
            raise RuntimeError("not thought of")
        return Parsed({"step": size}, {}, "absent", numbers={"global_step": 7})


OTHER, NONE = Other(), object()


@pytest.fixture
def with_other(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from _registered(monkeypatch, "OTHER")


def _registered(monkeypatch: pytest.MonkeyPatch, attribute: str) -> Iterator[None]:
    own = installed_points("chaos.checkpoints")
    point = EntryPoint("other", f"{HERE}:{attribute}", "chaos.checkpoints")
    members = Registry("chaos.checkpoints", NOUNS["chaos.checkpoints"], source=lambda group: [*own, point])
    monkeypatch.setattr(registered, "registry", lambda group: members)
    monkeypatch.setattr(registered, "package_of", lambda group, name: "chaos-other 1.0" if name == "other" else None)
    registered.registered_readers.cache_clear()
    yield
    registered.registered_readers.cache_clear()


@pytest.mark.usefixtures("with_other")
def test_the_reader_of_another_package_reads_its_own_files(tmp_path: Path) -> None:
    path = tmp_path / "step_4.bin"
    path.write_bytes(b"OTHER")
    checkpoint = read_checkpoint(path)
    assert (checkpoint.values, checkpoint.numbers) == ({"step": 5}, {"step": 5, "global_step": 7})


@pytest.mark.usefixtures("with_other")
def test_no_other_reader_takes_over_a_file_of_this_package(tmp_path: Path, ckpt: CkptWriter) -> None:
    path = tmp_path / "rank_0-1_5.ckpt"
    path.write_bytes(ckpt.sample())
    assert "fc.weight" in read_checkpoint(path).tensors


@pytest.mark.usefixtures("with_other")
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"OTHER" * 10, "the reader 'other' of chaos-other 1.0 has failed: RuntimeError: not thought of"),
        (b"OTHER defect of recognises", "none of the known formats"),
    ],
)
def test_a_defect_of_another_packages_reader_is_no_damage(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(CheckpointNotSupported, match=problem):
        read_checkpoint(tmp_path / "x")


@pytest.mark.usefixtures("with_other")
def test_another_packages_reader_may_say_that_a_file_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"OTHER damaged")
    with pytest.raises(CheckpointError, match="is damaged") as caught:
        read_checkpoint(tmp_path / "x")
    assert not isinstance(caught.value, CheckpointNotSupported)


def test_an_object_that_is_no_reader_is_refused_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in _registered(monkeypatch, "NONE"):
        (tmp_path / "x").write_bytes(b"x")
        with pytest.raises(RegistryError, match=r"'other' is registered as .* must derive from .*CheckpointReader"):
            read_checkpoint(tmp_path / "x")


@pytest.mark.parametrize("name", ["step_4.pt", "__0_0.distcp", "step_4.ckpt", "step_4"])
@pytest.mark.parametrize("content", [b"PK\x03\x04" + bytes(60), bytes(600), b"\x89HDF\r\n\x1a\n", b"x"])
def test_an_unknown_format_is_no_damaged_checkpoint(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CheckpointNotSupported, match="none of the known formats"):
        read_checkpoint(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("net-1_4.ckpt", "a MindSpore checkpoint"),
        ("step_4.safetensors", "safetensors"),
        ("step_4.npz", "a file of numpy.savez"),
    ],
)
def test_a_file_with_the_name_of_one_format_and_other_content_is_damaged(tmp_path: Path, name: str, words: str) -> None:
    for content, problem in ((b"PK\x03\x04" + bytes(60), f"is named as {words}"), (bytes(60), "starts with zeros")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CheckpointError, match=problem) as caught:
            read_checkpoint(tmp_path / name)
        assert not isinstance(caught.value, CheckpointNotSupported)


@pytest.mark.parametrize("start", ["d85e3a7f479506661f", "d95e3a7f7800000010", "da5e3a7f7800000010"])
def test_what_mindspore_has_encrypted_is_no_damaged_checkpoint(tmp_path: Path, start: str) -> None:
    """The first bytes are of files that MindSpore 2.10 has written, of each mode."""
    path = tmp_path / "net-1_4.ckpt"
    path.write_bytes(bytes.fromhex(start) + bytes(range(100)))
    with pytest.raises(CheckpointNotSupported, match="MindSpore has encrypted the content"):
        read_checkpoint(path)
