"""The memory for a checkpoint is a small multiple of its size, and a header cannot ask for more."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from chaos.observe.checkpoint import CheckpointError, read_checkpoint
from tests.unit.observe.ckpt_writer import CkptWriter

MIB = 1 << 20


def peak_of(path: Path) -> int:
    tracemalloc.start()
    try:
        read_checkpoint(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_bounded_by_the_size_of_the_file(ckpt: CkptWriter, tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    path.write_bytes(b"".join(ckpt.record(f"w{n}", [MIB], "Float32", bytes(4 * MIB)) for n in range(8)))
    assert peak_of(path) < 2 * path.stat().st_size


def test_a_small_file_cannot_ask_for_much_memory(ckpt: CkptWriter, tmp_path: Path) -> None:
    path = tmp_path / "bomb.ckpt"
    path.write_bytes(ckpt.record("w", [1 << 33], "Float32", bytes(4)) * 2)
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError):
            read_checkpoint(path)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()
