"""The memory for a checkpoint does not grow with its size, and a header cannot ask for more."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from chaos.observe.checkpoints.blocks import BLOCK
from chaos.observe.checkpoints.checkpoint import Checkpoint, CheckpointError, CheckpointNotSupported, read_checkpoint
from chaos.observe.checkpoints.ckpt_format import MAX_TEXT
from tests.unit.observe.ckpt_writer import CkptWriter

MIB = 1 << 20
ALLOWED = 4 * BLOCK
"""The block, and what numpy takes to look at it."""


def peak_of(path: Path) -> tuple[Checkpoint, int]:
    tracemalloc.start()
    try:
        return read_checkpoint(path), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def written(path: Path, parts: Iterable[bytes | int]) -> Path:
    """A file of bytes, and of so many zeros for a number, which take no place on the disk."""
    with path.open("wb") as file:
        for part in parts:
            file.write(part) if isinstance(part, bytes) else file.seek(part, 1)
        file.truncate()
    return path


def crc_of(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while block := file.read(MIB):
            crc = zlib.crc32(block, crc)
    return crc


def head(ckpt: CkptWriter, tag: str, dims: list[int], kind: str, length: int) -> bytes:
    """All of a record before its content."""
    inner = ckpt.tensor(dims, kind, b"")[:-1] + ckpt.varint(length)
    tensor = b"\x12" + ckpt.varint(len(inner) + length) + inner
    value = ckpt.field(1, tag.encode()) + tensor
    return b"\x0a" + ckpt.varint(len(value) + length) + value


def test_a_large_tensor_cut_into_records(ckpt: CkptWriter, tmp_path: Path) -> None:
    count, slices = 64 * MIB, [128 * MIB, 64 * MIB - 1, 64 * MIB + 1]  # the cuts need not be between values
    parts: list[bytes | int] = [
        part for length in slices for part in (head(ckpt, "w", [count], "Float32", length), length)
    ]
    path = written(tmp_path / "a.ckpt", [*parts, ckpt.integer("step_num", 5)])
    checkpoint, peak = peak_of(path)
    assert (checkpoint.tensors["w"].finite, checkpoint.values) == (True, {"step_num": 5})
    assert list(checkpoint.places) == ["step_num"]
    assert path.stat().st_size > 256 * MIB and peak < ALLOWED


def test_a_large_record_with_a_crc(ckpt: CkptWriter, tmp_path: Path) -> None:
    parts: list[bytes | int] = [head(ckpt, "w", [16 * MIB], "Float32", 64 * MIB), 64 * MIB]
    plain = written(tmp_path / "plain.ckpt", parts)
    path = written(tmp_path / "a.ckpt", [*parts, b"crc_num" + crc_of(plain).to_bytes(10, "big")])
    checkpoint, peak = peak_of(path)
    assert checkpoint.crc == "verified" and peak < ALLOWED


@pytest.mark.parametrize("checked", [False, True])
def test_a_large_safetensors(tmp_path: Path, checked: bool) -> None:
    header: dict[str, object] = {
        "z": {"dtype": "F32", "shape": [64 * MIB], "data_offsets": [0, 256 * MIB]},
        "a": {"dtype": "BF16", "shape": [MIB], "data_offsets": [256 * MIB, 258 * MIB]},
        "n": {"dtype": "I64", "shape": [], "data_offsets": [258 * MIB, 258 * MIB + 8]},
    }
    if checked:  # in the order of the names, and n zero bytes for the number n
        zeros, crc = bytes(MIB), 0
        for name, count in (("a", 2), ("n", 32), ("z", 256)):
            crc = zlib.crc32(name.encode(), crc)
            for _ in range(count):
                crc = zlib.crc32(zeros, crc)
        header["__metadata__"] = {"crc_num": str(crc)}
    text = json.dumps(header).encode()
    parts: list[bytes | int] = [len(text).to_bytes(8, "little") + text, 258 * MIB, (32 * MIB).to_bytes(8, "little")]
    checkpoint, peak = peak_of(written(tmp_path / "a.safetensors", parts))
    assert checkpoint.crc == ("verified" if checked else "absent")
    assert checkpoint.tensors["n"].scalar == 32 * MIB
    assert peak < ALLOWED


def test_a_small_file_cannot_ask_for_much_memory(ckpt: CkptWriter, tmp_path: Path) -> None:
    path = tmp_path / "bomb.ckpt"
    path.write_bytes(ckpt.record("w", [1 << 33], "Float32", bytes(4)) * 2)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError):
            read_checkpoint(path)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()


def test_names_and_texts_have_a_limit(ckpt: CkptWriter, tmp_path: Path) -> None:
    """They alone are kept of a file, so that nobody can put gigabytes into them."""
    long = MAX_TEXT // 4
    parts: list[bytes | int] = [part for n in range(4) for part in (head(ckpt, f"note{n}", [0], "str", long), long)]
    path = written(tmp_path / "a.ckpt", parts)
    with pytest.raises(CheckpointNotSupported, match=f"names and texts of more than {MAX_TEXT} bytes"):
        read_checkpoint(path)


def test_values_have_a_limit_in_number(ckpt: CkptWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ckpt"
    path.write_bytes(b"".join(ckpt.record(f"w{n}", [1], "Float32", bytes(4)) for n in range(3)))
    monkeypatch.setattr("chaos.observe.checkpoints.ckpt_format.MAX_VALUES", 3)
    assert len(read_checkpoint(path).tensors) == 3
    monkeypatch.setattr("chaos.observe.checkpoints.ckpt_format.MAX_VALUES", 2)
    with pytest.raises(CheckpointNotSupported, match="more than 2 values"):
        read_checkpoint(path)


def test_damage_in_any_block_is_told(ckpt: CkptWriter, tmp_path: Path) -> None:
    """Three blocks: the digest or the CRC shows a changed bit, ``finite`` an infinity, and a cut is a cut."""
    size = 2 * BLOCK + 40
    sound = ckpt.record("w", [size // 4], "Float32", bytes(size))
    plain, summed = tmp_path / "a.ckpt", tmp_path / "b.ckpt"
    plain.write_bytes(sound)
    summed.write_bytes(ckpt.with_crc(sound))
    digest = read_checkpoint(plain).tensors["w"].digest
    assert read_checkpoint(summed).crc == "verified"
    start = len(sound) - size
    for place in (0, BLOCK - 4, BLOCK, 2 * BLOCK - 4, 2 * BLOCK, size - 4):
        content = bytearray(sound)
        content[start + place + 2 : start + place + 4] = b"\x80\x7f"
        plain.write_bytes(content)
        tensor = read_checkpoint(plain).tensors["w"]
        assert tensor.digest != digest and not tensor.finite
        summed.write_bytes(content + ckpt.with_crc(sound)[len(sound) :])
        with pytest.raises(CheckpointError, match="the content was changed"):
            read_checkpoint(summed)
        plain.write_bytes(sound[: start + place])
        with pytest.raises(CheckpointError, match=r"at byte 0.*truncated"):
            read_checkpoint(plain)
