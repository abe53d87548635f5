"""Plain ranks write the format of MindSpore's checkpoints: what reads those, reads these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

from chaos.agent.digests import array_digest
from chaos.observe.checkpoints.checkpoint import read_checkpoint
from chaos.rehearsal.plain.ckpt import read_ckpt, write_ckpt

VALUES = {
    "layer1.weight": numpy.arange(300, dtype="float32").reshape(3, 100),
    "global_step": numpy.array([7], "int32"),
    "random_state": numpy.array([1, 2**63], "uint64"),
    "step_num": numpy.asarray(numpy.int64(7)),
}


def create(path: str) -> Any:
    return open(path, "wb", buffering=0)  # noqa: PTH123 - as the storage gives it


def opens(path: str) -> Any:
    return open(path, "rb")  # noqa: PTH123


def test_the_reader_of_the_checks_reads_what_a_rank_has_written(tmp_path: Path) -> None:
    path, written = tmp_path / "plain-1_7.ckpt", []
    write_ckpt(str(path), VALUES, create, lambda: written.append(sorted(one.name for one in tmp_path.iterdir())))
    assert written == [["plain-1_7.tmp"]] * len(VALUES)
    assert [one.name for one in tmp_path.iterdir()] == ["plain-1_7.ckpt"]
    checkpoint = read_checkpoint(path)
    assert list(checkpoint.tensors) == ["layer1.weight", "global_step", "random_state"]
    assert checkpoint.number("step_num") == checkpoint.number("global_step") == 7
    assert checkpoint.tensors["layer1.weight"].shape == (3, 100)
    for name, tensor in checkpoint.tensors.items():
        assert tensor.digest == array_digest(VALUES[name])


def test_a_rank_reads_what_it_has_written(tmp_path: Path) -> None:
    path = str(tmp_path / "one.ckpt")
    write_ckpt(path, VALUES, create, lambda: None)
    found = read_ckpt(path, opens)
    assert list(found) == list(VALUES)
    for name, array in VALUES.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert (found[name] == array).all()


@pytest.mark.parametrize("cut", [0, 1, 2, 40, 1300])
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "one.ckpt"
    write_ckpt(str(path), VALUES, create, lambda: None)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"one\.ckpt"):
        read_ckpt(str(path), opens)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.ckpt"
    path.write_bytes(b"\x12\x03abc")
    with pytest.raises(ValueError, match="not a checkpoint"):
        read_ckpt(str(path), opens)


def test_a_save_that_fails_leaves_no_file_of_that_name(tmp_path: Path) -> None:
    path = tmp_path / "one.ckpt"

    def fail() -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        write_ckpt(str(path), VALUES, create, fail)
    assert [one.name for one in tmp_path.iterdir()] == ["one.tmp"]


def test_a_checksum_is_that_of_mindspore_and_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "one.ckpt"
    write_ckpt(str(path), VALUES, create, lambda: None, crc=True)
    assert read_checkpoint(path).crc == "verified"
    assert list(read_ckpt(str(path), opens, crc=True)) == list(VALUES)
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="its checksum is not that of its content"):
        read_ckpt(str(path), opens)


def test_a_file_whose_checksum_is_cut_off_is_refused_where_one_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "one.ckpt"
    write_ckpt(str(path), VALUES, create, lambda: None, crc=True)
    path.write_bytes(path.read_bytes()[:-17])
    assert list(read_ckpt(str(path), opens)) == list(VALUES)
    with pytest.raises(ValueError, match="its checksum is not there"):
        read_ckpt(str(path), opens, crc=True)
