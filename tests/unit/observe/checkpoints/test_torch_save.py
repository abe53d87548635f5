"""Files of ``torch.save`` are read without torch, and every change of a byte that matters is seen."""

from __future__ import annotations

import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from chaos.agent.digest import number_digest, tensor_digest
from chaos.observe.checkpoints.checkpoint import Checkpoint, CheckpointError, CheckpointNotSupported, read_checkpoint
from chaos.observe.checkpoints.saved_state import read_saved_state
from chaos.observe.checkpoints.values import value_blocks
from tests.kit.checkpoints.torch_save import Called, Storage, TorchSave, View, floats, job_state, scalar, zipped

Read = Callable[[bytes], Checkpoint]
WRITER = TorchSave()


@pytest.fixture
def read(tmp_path: Path) -> Read:
    path = tmp_path / "step_4.pt"

    def read(content: bytes) -> Checkpoint:
        path.write_bytes(content)
        return read_checkpoint(path)

    return read


def test_names_are_flat_and_digests_are_those_of_the_agent(read: Read) -> None:
    checkpoint = read(WRITER.archive(job_state(4)))
    assert list(checkpoint.tensors) == [
        "net.weight",
        "optimizer.step.0",
        "optimizer.exp_avg.0",
    ]
    weight = np.arange(1.5, 7.5, dtype=np.float32).reshape(2, 3)
    assert checkpoint.tensors["net.weight"].digest == tensor_digest("float32", (2, 3), weight)
    assert checkpoint.values == {"optimizer.param_groups.0.lr": 0.1, "optimizer.param_groups.0.params.0": 0, "step": 4}
    assert checkpoint.crc == "verified"


def test_the_numbers_of_a_save_are_the_optimizers_updates_and_the_scripts_step(read: Read) -> None:
    assert read(WRITER.archive(job_state(4))).about_save == {"global_step": 4, "script_step": 4}
    two = {"a": {"state": {0: {"step": scalar(4)}}}, "b": {"state": {0: {"step": scalar(9)}}}}
    assert read(WRITER.archive(two)).about_save == {}, "two optimizers that have counted differently"
    frozen = {"optimizer": {"state": {0: {"step": scalar(4)}, 1: {"step": scalar(1)}}}}
    assert read(WRITER.archive(frozen)).about_save == {"global_step": 4}, "a parameter that has had fewer updates"
    assert read(WRITER.archive({"w": floats(1), "step_num": 4})).about_save == {"step_num": 4}
    named = {"args": Called("argparse.Namespace", (), {"iteration": 8}), "w": floats(1)}
    assert read(WRITER.archive(named)).about_save == {"script_step": 8}


def test_a_scripts_own_number_is_not_taken_for_the_optimizers(read: Read, tmp_path: Path) -> None:
    """A script may count from 0: its ``global_step`` is no witness against the save."""
    state = {"w": floats(1.0), "global_step": 3, "epoch_num": 7}
    checkpoint = read(WRITER.archive(state))
    assert (checkpoint.number("global_step"), checkpoint.number("epoch_num")) == (None, None)
    assert read_saved_state(tmp_path / "step_4.pt").numbers == {"script_step": 3}


def test_plain_numbers_have_the_digest_that_the_agent_gives_them(tmp_path: Path) -> None:
    path = WRITER.write(tmp_path / "x.pt", {"w": floats(1.0), "optimizer": {"state": {0: {"step": 4}}}})
    assert read_saved_state(path).digests["optimizer.state.0.step"] == number_digest(4)


def test_views_of_one_storage_are_tensors_of_their_own(read: Read) -> None:
    storage = Storage(struct.pack("<6f", *range(6)))
    state = {
        "whole": View(storage, [2, 3]),
        "turned": View(storage, [3, 2], [1, 3]),
        "row": View(storage, [3], offset=3),
        "column": View(storage, [2], [3], offset=1),
        "repeated": View(storage, [4, 2], [0, 1]),
        "tied": View(storage, [2, 3]),
        "empty": View(storage, [0, 3]),
    }
    tensors = read(WRITER.archive(state)).tensors
    whole = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = {
        "whole": whole,
        "turned": whole.T,
        "row": whole[1],
        "column": whole[:, 1],
        "repeated": np.tile(np.arange(2, dtype=np.float32), (4, 1)),
        "tied": whole,
        "empty": whole[:0],
    }
    for name, array in expected.items():
        assert tensors[name].digest == tensor_digest("float32", array.shape, array.tobytes()), name


def test_the_place_of_a_tensor_is_where_its_values_lie(read: Read, tmp_path: Path) -> None:
    storage = Storage(struct.pack("<6f", *range(6)))
    checkpoint = read(WRITER.archive({"row": View(storage, [3], offset=3), "turned": View(storage, [3, 2], [1, 3])}))
    assert np.concatenate(list(value_blocks(checkpoint, "row"))).tolist() == [3, 4, 5]
    assert "turned" not in checkpoint.places


@pytest.mark.parametrize(
    ("kind", "dtype", "raw", "finite"),
    [
        ("HalfStorage", "float16", b"\x00\x3c\x00\x7c", False),
        ("BFloat16Storage", "bfloat16", b"\x80\x3f\x80\x7f", False),
        ("BFloat16Storage", "bfloat16", b"\x80\x3f\x80\x3f", True),
        ("LongStorage", "int64", bytes(16), True),
        ("BoolStorage", "bool", b"\x00\x01", True),
    ],
)
def test_types_of_storages(read: Read, kind: str, dtype: str, raw: bytes, finite: bool) -> None:
    tensor = read(WRITER.archive({"w": View(Storage(raw, kind), [2])})).tensors["w"]
    assert (tensor.dtype, tensor.digest, tensor.finite) == (dtype, tensor_digest(dtype, (2,), raw), finite)


@pytest.mark.parametrize(
    ("dtype", "raw", "finite"),
    [("float8_e4m3fn", b"\x38\x7f", False), ("float8_e5m2", b"\x38\x7b", True), ("uint16", bytes(4), True)],
)
def test_types_beside_an_untyped_storage(read: Read, dtype: str, raw: bytes, finite: bool) -> None:
    tensor = read(WRITER.archive({"w": View(Storage(raw, "UntypedStorage"), [2], dtype=dtype)})).tensors["w"]
    assert (tensor.dtype, tensor.digest, tensor.finite) == (dtype, tensor_digest(dtype, (2,), raw), finite)


def test_objects_stay_inert_and_their_tensors_are_read(read: Read, tmp_path: Path) -> None:
    left = tmp_path / "called"
    state = {
        "harmful": Called("os.system", (f"touch {left}",)),
        "model": Called("my.Net", (), {"weight": floats(1.0), "name": "net"}),
        "sharded": Called("torch._utils._rebuild_wrapper_subclass", (1,), {"_local_tensor": floats(2.0), "_spec": 1}),
        "parameter": Called("torch._utils._rebuild_parameter", (floats(3.0), True)),
    }
    checkpoint = read(WRITER.archive(state))
    assert not left.exists()
    assert list(checkpoint.tensors) == ["model.weight", "sharded", "parameter"]
    assert checkpoint.values == {"model.name": "net"}


def test_numpys_scalars_and_arrays_are_read(read: Read) -> None:
    little = Called("numpy.dtype", ("i8", False, True), (3, "<", None, None, None, -1, -1, 0))
    values = np.arange(3, dtype=np.int64)
    made = Called("numpy._core.multiarray._reconstruct", (0, (0,), b"b"), (1, (3,), little, False, values.tobytes()))
    step = Called("numpy._core.multiarray.scalar", (little, (12).to_bytes(8, "little")))
    checkpoint = read(WRITER.archive({"step": step, "order": made, "w": floats(1)}))
    assert checkpoint.values == {"step": 12}
    assert checkpoint.tensors["order"].digest == tensor_digest("int64", (3,), values)


def test_every_flipped_bit_of_a_members_content_is_seen(read: Read) -> None:
    whole = WRITER.archive(job_state(4))
    with zipfile.ZipFile(read_path(read, whole)) as archive:
        places = [range(begin := _content_at(whole, member), begin + member.file_size) for member in archive.infolist()]
    assert sum(map(len, places)) > 100
    for place in (place for span in places for place in span):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        with pytest.raises(CheckpointError, match="the content was changed") as caught:
            read(bytes(changed))
        assert not isinstance(caught.value, CheckpointNotSupported)


def read_path(read: Read, content: bytes) -> Path:
    return read(content).path


def _content_at(whole: bytes, member: zipfile.ZipInfo) -> int:
    name, extra = struct.unpack_from("<2H", whole, member.header_offset + 26)
    return member.header_offset + 30 + int(name) + int(extra)


def test_a_cut_or_half_written_file_is_damaged_wherever_it_ends(read: Read) -> None:
    whole = WRITER.archive(job_state(4))
    for end in range(100, len(whole), 7):
        for damaged in {whole[:end], whole[:end] + bytes(len(whole) - end)} - {whole}:  # it ends with zeros
            with pytest.raises(CheckpointError) as caught:
                read(damaged)
            assert not isinstance(caught.value, CheckpointNotSupported), end


def test_a_file_saved_without_crcs_is_no_damaged_file(read: Read) -> None:
    whole = bytearray(WRITER.archive({"w": floats(1.0, 2.0)}))
    for mark, place in ((b"PK\x01\x02", 16), (b"PK\x03\x04", 14)):
        at = whole.find(mark)
        while at >= 0:
            whole[at + place : at + place + 4] = bytes(4)
            at = whole.find(mark, at + 1)
    checkpoint = read(bytes(whole))
    assert (checkpoint.crc, list(checkpoint.tensors)) == ("absent", ["w"])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19." + bytes(99), "before PyTorch 1.6"),
        (WRITER.archive({"w": floats(1)}, members={"byteorder": b"big"}), "another order of bytes"),
        (WRITER.archive({"w": floats(1)}, members={"constants.pkl": b"N."}), "TorchScript"),
        (zipped({"a/data.pkl": b"N."}), "without the version"),
        (WRITER.archive({"w": Called("torch._utils._rebuild_sparse_tensor", (1,))}), "'w' is made by torch._utils"),
        (WRITER.archive({"w": View(Storage(bytes(4), "QInt8Storage"), [4])}), "QInt8Storage"),
        (WRITER.archive({"w": View(Storage(bytes(4), "UntypedStorage"), [4], dtype="bits8")}), "torch.bits8"),
        (WRITER.archive([None]), "neither tensors nor plain values"),
        (WRITER.archive({"a.b": 1, "a": {"b": 2}}), "two values are called 'a.b'"),
        (zipped({"a/data.pkl": b"N."}, zipfile.ZIP_DEFLATED), "compressed"),
    ],
)
def test_what_may_be_sound_and_is_not_known_is_unknown(read: Read, content: bytes, problem: str) -> None:
    with pytest.raises(CheckpointNotSupported, match=problem):
        read(content)


@pytest.mark.parametrize(
    ("view", "problem"),
    [
        (View(Storage(bytes(16)), [5]), "reaches out"),
        (View(Storage(bytes(16)), [4], offset=1), "reaches out"),
        (View(Storage(bytes(16)), [2, 2], [3, 1]), "reaches out"),
        (View(Storage(bytes(16)), [1 << 61, 1 << 61], [0, 1 << 61]), "reaches out"),
        (View(Storage(bytes(16)), [4], [-1], 3), "impossible"),
        (View(Storage(bytes(16)), [-4], [1]), "impossible"),
        (View(Storage(bytes(16)), [4], [1, 1]), "impossible"),
        (View(Storage(b"\x02", "BoolStorage"), [1]), "boolean"),
    ],
)
def test_impossible_tensors_are_refused(read: Read, view: View, problem: str) -> None:
    with pytest.raises(CheckpointError, match=problem) as caught:
        read(WRITER.archive({"w": view}))
    assert not isinstance(caught.value, CheckpointNotSupported)


@pytest.mark.parametrize("shape", [[1 << 40], [1 << 20, 1 << 20], [1 << 61] * 2])
def test_a_tensor_that_repeats_one_value_endlessly_is_not_read(read: Read, shape: list[int]) -> None:
    with pytest.raises(CheckpointNotSupported, match="the storages that they share only"):
        read(WRITER.archive({"w": View(Storage(bytes(4)), shape, [0] * len(shape))}))


def test_a_large_tensor_out_of_order_is_not_read(read: Read) -> None:
    with pytest.raises(CheckpointNotSupported, match="not stored in order"):
        read(WRITER.archive({"w": View(Storage(bytes(36 << 20)), [9 << 10, 1 << 10], [1, 9 << 10])}))


def test_missing_and_short_storages_are_damage(read: Read) -> None:
    for number, content in ((0, b""), (0, bytes(20)), (0, bytes(28))):
        with pytest.raises(CheckpointError, match="and its tensors need"):
            read(WRITER.archive({"w": floats(*range(6))}, members={f"data/{number}": content}))
    pickled = TorchSave().pickle({"w": floats(1)})
    with pytest.raises(CheckpointError, match="is missing"):
        read(zipped({"a/data.pkl": pickled, "a/version": b"3\n"}))


@pytest.mark.parametrize(
    "pickled",
    [
        *(b"\x80\x02t.", b"\x80\x02R.", b"\x80\x02h\x07.", b"\x80\x02(.", b"\x80\x02}K\x01s.", b"\x80\x02NN\x81.", b""),
        *(b"\x80\x02u.", b"\x80\x020.", b"\x80\x02q\x00.", b"\x80\x02Na.", b"\x80\x02}NK\x01s", b"\x80\x02\xff."),
        *(b"\x80\x02(N\x93.", b"\x80\x02NNb", b"\x80\x02Q.", b"\x80\x02K\x01Q.", b"\x80\x02]2b.", b"\x80\x02(]tNR."),
    ],
)
def test_a_pickle_that_is_not_sound_is_refused(read: Read, pickled: bytes) -> None:
    with pytest.raises(CheckpointError):
        read(zipped({"a/data.pkl": pickled, "a/version": b"3\n"}))


def test_a_hostile_pickle_costs_neither_memory_nor_time(read: Read) -> None:
    laughs = b"\x80\x02]q\x00" + b"".join(
        b"](" + b"h" + bytes([n]) * 1 + b"h" + bytes([n]) + b"eq" + bytes([n + 1]) for n in range(60)
    )
    circle = b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s."
    huge_memo = b"\x80\x02Nr\xff\xff\xff\xff."
    huge_text = b"\x80\x02X\xff\xff\xff\xffabc."
    deep = b"\x80\x02" + b"(" * 100_000 + b"N" + b"t" * 100_000 + b"."
    key = b"\x80\x02}" + b"(" * 1000 + b"N" + b"t" * 1000 + b"Ns."
    for pickled in (laughs + b".", circle, huge_memo, huge_text, deep, key):
        with pytest.raises(CheckpointError):
            read(zipped({"a/data.pkl": pickled, "a/version": b"3\n"}))


@pytest.mark.parametrize("protocol", range(6))
def test_pickles_of_every_protocol_are_read(read: Read, protocol: int) -> None:
    value = {"step": 12, "lr": 0.5, "name": "net", "on": True, "list": [1, (2, 3)], "none": None, "b": b"ab", "s": {5}}
    content = zipped({"a/data.pkl": pickle.dumps(value, protocol), "a/version": b"3\n"})
    expected = {"step": 12, "lr": 0.5, "name": "net", "on": True, "list.0": 1, "list.1.0": 2, "list.1.1": 3, "s.0": 5}
    assert read(content).values == expected


def test_members_that_overlap_or_lie_outside_are_refused(read: Read) -> None:
    whole = WRITER.archive({"a": floats(1, 2), "b": floats(3, 4)})
    entries = [at for at in range(len(whole)) if whole.startswith(b"PK\x01\x02", at)]
    for entry, offset in ((entries[3], 0), (entries[3], 1 << 31), (entries[2], len(whole) - 30)):
        changed = bytearray(whole)
        changed[entry + 42 : entry + 46] = offset.to_bytes(4, "little")
        with pytest.raises(CheckpointError):
            read(bytes(changed))
