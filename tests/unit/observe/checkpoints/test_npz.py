"""Files of ``numpy.savez`` are read as numpy reads them, nothing is unpickled, and every change of a value is seen."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaos.agent.digest import tensor_digest
from chaos.observe.checkpoints.blocks import BLOCK
from chaos.observe.checkpoints.checkpoint import Checkpoint, CheckpointError, CheckpointNotSupported, read_checkpoint
from chaos.observe.checkpoints.saved_state import read_saved_state
from chaos.observe.checkpoints.values import value_blocks
from chaos.observe.checkpoints.zipped import npz_reader
from tests.kit.checkpoints.torch_save import zipped
from tests.kit.npz import archive, floats, job_arrays, npy, of_text, whole

Read = Callable[[bytes], Checkpoint]
BOTH = pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
TYPES = ["?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    path = tmp_path / "step_4.npz"

    def read(content: bytes) -> Checkpoint:
        path.write_bytes(content)
        return read_checkpoint(path)

    return read


@BOTH
def test_names_and_numbers_are_those_of_the_file_and_digests_those_of_the_agent(read: Read, compression: int) -> None:
    checkpoint = read(archive(job_arrays(4), compression))
    assert list(checkpoint.tensors) == ["weight", "momentum.weight", "step_num"]
    weight = np.arange(1.5, 7.5, dtype=np.float32).reshape(2, 3)
    assert checkpoint.tensors["weight"].digest == tensor_digest("float32", (2, 3), weight)
    assert (checkpoint.numbers, checkpoint.crc) == ({"step_num": 4}, "verified")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read_as_numpy_reads_it(tmp_path: Path, save: Callable[..., None]) -> None:
    values = np.arange(24).reshape(2, 3, 4)
    arrays: dict[str, Any] = {f"of {kind[-2:]}": values.astype(kind) for kind in TYPES}
    arrays |= {"层/weight": values.T, "cut": values[:, ::2], "columns": np.asfortranarray(values), "none": values[:0]}
    arrays |= {"whole": 7, "real": 0.5, "flag": True, "a.npy": np.zeros(1), "n" * 600: np.ones(3)}
    save(tmp_path / "x.npz", **arrays)
    checkpoint = read_checkpoint(tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as loaded:
        assert list(checkpoint.tensors) == list(arrays)
        for name, tensor in checkpoint.tensors.items():
            array = np.ascontiguousarray(arrays[name]).reshape(np.shape(arrays[name]))
            assert (tensor.dtype, tensor.shape) == (str(array.dtype), array.shape), name
            assert tensor.digest == tensor_digest(str(array.dtype), array.shape, array.tobytes()), name
            assert np.array_equal(array, loaded[name]), name


def test_a_name_longer_than_what_the_format_is_known_by(read: Read) -> None:
    assert list(read(archive({"n" * 600: floats(1)})).tensors) == ["n" * 600]


def test_a_single_text_is_a_plain_value(read: Read, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", optimizer="动量 SGD", w=np.zeros(2))
    assert read_checkpoint(tmp_path / "x.npz").values == {"optimizer": "动量 SGD"}


def test_the_scripts_own_step_is_not_taken_for_a_step_from_1(read: Read, tmp_path: Path) -> None:
    """A script may count from 0: only ``step_num`` has a meaning that is asked for."""
    checkpoint = read(archive({"w": floats(1), "step": whole(3), "epoch_num": whole(1)}))
    assert (checkpoint.number("step_num"), checkpoint.number("global_step"), checkpoint.number("epoch_num")) == (
        *(None, None),
        None,
    )
    assert read_saved_state(tmp_path / "step_4.npz").numbers["script_step"] == 3


def test_the_place_of_an_array_is_where_its_values_lie(read: Read) -> None:
    columns = npy("<f4", [2, 3], struct.pack("<6f", *range(6)), columns=True)
    arrays = {"a": floats(1), "row": floats(3, 4, 5), "turned": columns}
    checkpoint = read(archive(arrays))
    assert np.concatenate(list(value_blocks(checkpoint, "row"))).tolist() == [3, 4, 5]
    assert list(checkpoint.places) == ["a", "row"]
    turned = np.arange(6, dtype=np.float32).reshape(3, 2).T
    assert checkpoint.tensors["turned"].digest == tensor_digest("float32", (2, 3), turned.tobytes())
    assert not read(archive(arrays, zipfile.ZIP_DEFLATED)).places


@pytest.mark.parametrize("version", [1, 2, 3])
def test_headers_of_every_version(read: Read, version: int) -> None:
    content = npy("<f4", [2], struct.pack("<2f", 1, float("inf")), version=version)
    tensor = read(archive({"w": content})).tensors["w"]
    assert (tensor.dtype, tensor.shape, tensor.finite) == ("float32", (2,), False)


def test_every_flipped_bit_of_a_members_content_is_damage(read: Read) -> None:
    content = archive(job_arrays(4))
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        members = packed.infolist()
    places = [place for member in members for place in _content_of(content, member)]
    assert len(places) > 200
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        with pytest.raises(CheckpointError, match="the content was changed") as caught:
            read(bytes(changed))
        assert not isinstance(caught.value, CheckpointNotSupported), place


def _content_of(content: bytes, member: zipfile.ZipInfo) -> range:
    name, extra = struct.unpack_from("<2H", content, member.header_offset + 26)
    begin = member.header_offset + 30 + int(name) + int(extra)
    return range(begin, begin + member.compress_size)


@BOTH
def test_a_cut_or_half_written_file_is_damaged_wherever_it_ends(read: Read, compression: int) -> None:
    content = archive(job_arrays(4), compression)
    for end in range(0, len(content), 7):
        for damaged in {content[:end], content[:end] + bytes(len(content) - end)} - {content}:  # it ends with zeros
            with pytest.raises(CheckpointError) as caught:
                read(damaged)
            assert not isinstance(caught.value, CheckpointNotSupported), end


@BOTH
def test_no_flipped_bit_of_the_file_makes_another_value(read: Read, compression: int) -> None:
    """Some bits mean nothing, such as the last bits of a compressed member."""
    content = archive(job_arrays(4), compression)
    expected = {name: tensor.digest for name, tensor in read(content).tensors.items()}
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        try:
            tensors = read(bytes(changed)).tensors
        except CheckpointError:
            continue
        assert {name: tensor.digest for name, tensor in tensors.items()} == expected, place


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (archive({}), "holds no arrays"),
        (floats(1), "is a file of numpy.save: an array without a name"),
        (archive({"w": npy("|O", [1], b"cos\nsystem\n(S'true'\ntR.")}), "'w' holds Python objects, which are pickled"),
        (
            archive({"w": of_text("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", bytes(4))}),
            "type",
        ),
        (archive({"w": npy(">f4", [1], bytes(4))}), "another order of bytes"),
        (archive({"w": npy("<f16", [1], bytes(16))}), "'w' has the type f16"),
        (archive({"w": npy("<V2", [1], bytes(2))}), "'w' has the type V2"),
        (archive({"w": npy("<U2", [1], bytes(8))}), "'w' has the type U2"),
        (archive({"w": npy("<M8", [1], bytes(8))}), "'w' has the type M8"),
        (archive({"w": npy("<U99999", [], bytes(4 * 99999))}), "is a text or stored by columns"),
        (archive({"w": npy("<f4", [1] * 40, bytes(4))}), "40 dimensions"),
        (archive({"w": npy("<f4", [1], bytes(4), version=9)}), "version 9"),
        (archive({"w": of_text("x" * 20_000, version=2)}), "over the limit of 10000"),
        (archive({"w": of_text("{'descr': '<f4', 'shape': (1,), }", bytes(4))}), "type"),
        (archive({"w": of_text("[1, 2]", bytes(4))}), "type"),
        (archive({"w": b"GIF89a" + bytes(100)}), "'w' is no array of numpy"),
        (zipped({"w.npy": floats(1), "meta.json": b"{}"}), "'meta.json', which numpy.savez does not write"),
        (zipped({"w.npy": floats(1)}, zipfile.ZIP_BZIP2), "compressed in a way that is not read"),
    ],
)
def test_what_may_be_sound_and_is_not_known_is_unknown(read: Read, content: bytes, problem: str) -> None:
    with pytest.raises(CheckpointNotSupported, match=problem):
        read(content)


@pytest.mark.parametrize(
    ("array", "problem"),
    [
        (npy("<f4", [3], bytes(8)), "has 8 bytes, but its type and shape need 12"),
        (npy("<f4", [1], bytes(8)), "has 8 bytes, but its type and shape need 4"),
        (npy("<f4", [1 << 50, 1 << 50], bytes(8)), "has 8 bytes"),
        (npy("|b1", [1], b"\x02"), "boolean"),
        (npy("<f4", [1], bytes(4))[:40], "ends within its header"),
        (b"", "ends within its header"),
    ],
)
def test_impossible_arrays_are_damage(read: Read, array: bytes, problem: str) -> None:
    with pytest.raises(CheckpointError, match=problem) as caught:
        read(archive({"w": array}))
    assert not isinstance(caught.value, CheckpointNotSupported)


def test_damage_comes_before_content_that_is_not_known(read: Read) -> None:
    content = bytearray(archive({"w": npy("|O", [1], b"a pickle")}))
    content[content.index(b"a pickle")] ^= 1
    with pytest.raises(CheckpointError, match="the content was changed") as caught:
        read(bytes(content))
    assert not isinstance(caught.value, CheckpointNotSupported)


@pytest.mark.parametrize("content", [bytes(600), b"x" * 600])
def test_other_content_under_the_name_is_damage(read: Read, content: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"starts with zeros|is named as a file of numpy.savez") as caught:
        read(content)
    assert not isinstance(caught.value, CheckpointNotSupported)


def test_nothing_is_unpickled(read: Read, tmp_path: Path) -> None:
    left = tmp_path / "called"
    harmful = f"cos\nsystem\n(S'touch {left}'\ntR.".encode()
    with pytest.raises(CheckpointNotSupported):
        read(archive({"w": floats(1), "harm": npy("|O", [], harmful)}))
    assert not left.exists()


def _peak(path: Path) -> tuple[Checkpoint | CheckpointError, int]:
    tracemalloc.start()
    try:
        return read_checkpoint(path), tracemalloc.get_traced_memory()[1]
    except CheckpointError as error:
        return error, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@BOTH
def test_the_memory_does_not_grow_with_the_file(tmp_path: Path, compression: int) -> None:
    path, size = tmp_path / "x.npz", 96 << 20
    with zipfile.ZipFile(path, "w", compression, compresslevel=1) as packed, packed.open("w.npy", "w") as member:
        member.write(npy("<f4", [size // 4], b""))
        for _ in range(size >> 20):
            member.write(bytes(1 << 20))
    checkpoint, peak = _peak(path)
    assert isinstance(checkpoint, Checkpoint) and checkpoint.tensors["w"].shape == (size // 4,)
    assert peak < 6 * BLOCK


def test_a_small_file_cannot_ask_for_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.npz"
    monkeypatch.setattr(npz_reader, "_ALWAYS", 1 << 20)
    path.write_bytes(archive({"w": npy("<f4", [8 << 18], bytes(8 << 20))}, zipfile.ZIP_DEFLATED))
    error, peak = _peak(path)
    assert isinstance(error, CheckpointNotSupported) and "over the limit" in str(error) and peak < 1 << 20
    content = bytearray(archive({"w": npy("<f4", [16], bytes(8 << 20))}, zipfile.ZIP_DEFLATED))
    listed = content.rindex(b"PK\x01\x02") + 24
    content[listed : listed + 4] = (128 + 64).to_bytes(4, "little")  # 8 MiB under the word of 192 bytes
    path.write_bytes(content)
    error, peak = _peak(path)
    assert "more bytes than the 192 that are listed" in str(error) and peak < 3 * BLOCK
    columns = npy("<f4", [4096, 4096], bytes(64 << 20), columns=True)
    path.write_bytes(archive({"w": columns}))
    error, peak = _peak(path)
    assert isinstance(error, CheckpointNotSupported) and "stored by columns" in str(error) and peak < 4 * BLOCK
