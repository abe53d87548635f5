"""A damaged checkpoint is refused, with the file and what is wrong in the error; the reader never fails otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chaos.observe.checkpoints.checkpoint import Checkpoint, CheckpointError, CheckpointNotSupported, read_checkpoint
from tests.kit.examples import examples
from tests.unit.observe.ckpt_writer import CkptWriter
from tests.unit.observe.mindformers_files import write_safetensors
from tests.unit.observe.values import values

Read = Callable[[bytes], Checkpoint]


@pytest.fixture(scope="session")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    path = tmp_path_factory.mktemp("damage") / "rank_0-1_5.ckpt"

    def read(content: bytes) -> Checkpoint:
        path.write_bytes(content)
        return read_checkpoint(path)

    return read


def digests(checkpoint: Checkpoint) -> dict[str, str]:
    return {name: tensor.digest for name, tensor in checkpoint.tensors.items()}


def test_a_sound_file_is_read(read: Read, ckpt: CkptWriter) -> None:
    checkpoint = read(ckpt.sample())
    assert list(checkpoint.tensors) == ["fc.weight", "moments.fc.weight", "flag"]
    assert values(checkpoint, "fc.weight").tolist() == [1.0, -2.0, 3.5, 0.25]
    assert checkpoint.values == {"epoch_num": 1, "step_num": 5}


def test_a_file_cut_anywhere_is_refused_or_lacks_names(read: Read, ckpt: CkptWriter) -> None:
    """A cut exactly between records leaves a sound, shorter file: the names are all that shows it."""
    sound, whole = ckpt.sample(), read(ckpt.sample())
    everything = set(whole.tensors) | set(whole.values)
    refused = 0
    for length in range(len(sound)):
        try:
            shorter = read(sound[:length])
        except CheckpointError:
            refused += 1
        else:
            assert set(shorter.tensors) | set(shorter.values) < everything
    assert refused == len(sound) - 4


def test_a_cut_through_a_file_with_a_crc_loses_its_crc(read: Read, ckpt: CkptWriter) -> None:
    sound = ckpt.with_crc(ckpt.sample())
    assert read(sound).crc == "verified"
    passed = []
    for length in range(len(sound)):
        try:
            passed.append(read(sound[:length]).crc)
        except CheckpointError:
            continue
    assert passed == ["absent"] * 5  # the five ends of records


def test_a_flipped_bit_is_refused_or_changes_what_is_read(read: Read, ckpt: CkptWriter) -> None:
    """Without a CRC the digests, names and values are what shows a bit that was flipped inside them."""
    sound = ckpt.sample()
    whole = read(sound)
    for position in range(len(sound)):
        for bit in range(8):
            flipped = bytearray(sound)
            flipped[position] ^= 1 << bit
            try:
                other = read(bytes(flipped))
            except CheckpointError:
                continue
            assert (digests(other), other.values) != (digests(whole), whole.values), (position, bit)


def test_a_flipped_bit_inside_the_content_changes_the_digest(read: Read, ckpt: CkptWriter) -> None:
    sound = ckpt.sample()
    at = sound.index(bytes.fromhex("00006040"))  # 3.5 in fc.weight
    flipped = sound[:at] + b"\x01" + sound[at + 1 :]
    before, after = digests(read(sound)), digests(read(flipped))
    assert {name for name in before if before[name] != after[name]} == {"fc.weight"}


def test_damage_that_mindspore_loads_without_a_word_is_refused(read: Read, ckpt: CkptWriter) -> None:
    good = ckpt.floats("a", 1.0, 2.0)
    no_content = ckpt.field(1, ckpt.field(1, b"a") + ckpt.field(2, b"\x08\x02" + ckpt.field(2, b"Float32")))
    extra_inside = ckpt.tensor([2], "Float32", bytes(8)) + ckpt.field(9, b"?")
    extra_value = ckpt.field(1, b"a") + ckpt.field(2, ckpt.tensor([2], "Float32", bytes(8))) + ckpt.field(4, b"?")
    twice_inside = ckpt.field(1, b"x") + ckpt.field(1, b"a") + ckpt.field(2, ckpt.tensor([2], "Float32", bytes(8)))
    cases = {
        "needs 8": ckpt.record("a", [2], "Float32", bytes(12)),
        "slices are missing": ckpt.record("a", [4], "Float32", bytes(8)) + b"",
        "the next record": ckpt.record("a", [4], "Float32", bytes(8)) + ckpt.floats("b", 1.0),
        "in the file twice": good + ckpt.floats("b", 1.0) + good,
        "no type or no content": no_content,
        "field that a checkpoint value does not have": ckpt.field(1, ckpt.field(1, b"a") + ckpt.field(2, extra_inside)),
        "does not have": ckpt.field(1, extra_value),
        "its fields take": ckpt.field(1, twice_inside),
        "expected a record": good + ckpt.field(5, b"xx"),
        "neither 0 nor 1": ckpt.record("a", [1], "Bool", b"\x07"),
        "the stored CRC": good + b"crc_num" + bytes(10),
    }
    for expected, content in cases.items():
        with pytest.raises(CheckpointError, match=expected) as caught:
            read(content)
        assert "rank_0-1_5.ckpt" in str(caught.value)


def test_two_complete_tensors_of_one_name_side_by_side_are_not_slices(read: Read, ckpt: CkptWriter) -> None:
    with pytest.raises(CheckpointError, match="'a' is in the file twice"):
        read(ckpt.floats("a", 1.0, 2.0) * 2)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is empty"),
        (bytes(1), "zeros"),
        (bytes(4096), "zeros"),
        (b"\x0a" + bytes(4096), "no tag|not a checkpoint value"),
        (b"garbage " * 100, "is named as a MindSpore checkpoint"),
        (b"\x0a", "truncated"),
        (b"\x0a" + b"\xff" * 20, "not a protobuf number"),
        (b"\x0a\x80\x00", "not a protobuf number"),
        (b"\x0a\xff\xff\xff\x7f" + bytes(10), "truncated"),
        (b"crc_num" + bytes(10), "is named as"),
        (b"\x80\x04K\x01.", "is named as"),
    ],
)
def test_what_is_no_checkpoint_at_all_is_refused(read: Read, content: bytes, expected: str) -> None:
    with pytest.raises(CheckpointError, match=expected):
        read(content)


def test_impossible_types_dims_and_texts_are_refused(read: Read, ckpt: CkptWriter) -> None:
    cases = {
        "type 'Floau32'": ckpt.record("a", [2], "Floau32", bytes(8)),
        "impossible dims": ckpt.record("a", [-2], "Float32", bytes(8)),
        "more than are left": ckpt.record("a", [1 << 40], "Float32", bytes(8)),
        "needs 0": ckpt.record("a", [3, 0], "Float32", bytes(8)),
        "no tag": ckpt.record("", [2], "Float32", bytes(8)),
        "is not text": ckpt.field(1, ckpt.field(1, b"\xff\xfe") + ckpt.field(2, ckpt.tensor([], "Int8", b"\0"))),
        "not UTF-32": ckpt.record("a", [0], "str", b"\xff\xff\xff\xff"),
        "expected \\[0\\]": ckpt.record("a", [1], "str", "x".encode("utf-32-le")),
    }
    for expected, content in cases.items():
        with pytest.raises(CheckpointError, match=expected):
            read(content)
    with pytest.raises(CheckpointError, match="impossible dims"):
        read(ckpt.record("a", [1] * 33, "Float32", bytes(4)))


def test_slices_of_one_tensor_are_joined(read: Read, ckpt: CkptWriter) -> None:
    whole = read(ckpt.record("a", [2, 3], "Int16", bytes(range(12)))).tensors["a"]
    parts = b"".join(ckpt.record("a", [2, 3], "Int16", bytes(range(n, n + 4))) for n in (0, 4, 8))
    joined = read(parts + ckpt.floats("b", 1.0))
    assert joined.tensors["a"].digest == whole.digest
    assert list(joined.tensors) == ["a", "b"]
    with pytest.raises(CheckpointError, match="16 bytes of content"):
        read(ckpt.record("a", [2, 3], "Int16", bytes(8)) * 2)


def test_a_scalar_has_one_digest_however_a_release_writes_its_dims(read: Read, ckpt: CkptWriter) -> None:
    forms = [read(ckpt.record("lr", dims, "Float32", b"\0\0\x80\x3f")).tensors["lr"] for dims in ([], [0], [1])]
    assert len({form.digest for form in forms}) == 1
    assert [form.scalar for form in forms] == [1.0, 1.0, 1.0]
    assert read(ckpt.record("none", [0], "Float32", b"")).tensors["none"].shape == (0,)


def test_what_this_reader_cannot_judge_is_told_apart_from_damage(read: Read, ckpt: CkptWriter, tmp_path: Path) -> None:
    for content in (ckpt.record("a", [2], "Int4", b"\0"), ckpt.field(1, ckpt.field(1, b"a") + ckpt.field(3, b""))):
        with pytest.raises(CheckpointNotSupported):
            read(content)
    path = tmp_path / "large.ckpt"
    path.write_bytes(ckpt.sample())
    with pytest.raises(CheckpointNotSupported, match="over the limit of 10"):
        read_checkpoint(path, limit=10)


def test_a_missing_file_a_directory_and_a_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ckpt")
    for name, expected in (("none.ckpt", "cannot be read"), (".", "not a plain"), ("pipe.ckpt", "not a plain")):
        with pytest.raises(CheckpointError, match=expected):
            read_checkpoint(tmp_path / name)


def test_finite_tells_nan_and_infinity_in_every_float_type(read: Read, ckpt: CkptWriter) -> None:
    kinds = {"Float16": (b"\0\x7c", b"\0\x3c"), "BFloat16": (b"\xc0\x7f", b"\x80\x3f")}
    kinds |= {"Float32": (b"\0\0\xc0\x7f", b"\0\0\x80\x3f"), "Float64": (b"\0" * 6 + b"\xf0\xff", bytes(8))}
    for kind, (bad, good) in kinds.items():
        assert read(ckpt.record("a", [2], kind, good + good)).tensors["a"].finite, kind
        assert not read(ckpt.record("a", [2], kind, good + bad)).tensors["a"].finite, kind
    assert read(ckpt.record("a", [1], "Int32", b"\xff" * 4)).tensors["a"].finite


@examples(120)
@given(content=st.binary(max_size=400))
@example(content=b"\x0a\x02\x12\x00")
@example(content=b"\x0a\x02\x13\x14")
def test_any_bytes_end_in_a_checkpoint_or_a_checkpoint_error(read: Read, content: bytes) -> None:
    try:
        assert isinstance(read(b"\x0a" + content), Checkpoint)
    except CheckpointError as error:
        assert error.problem


@examples(120)
@given(
    edits=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=6), cut=st.integers(0, 9)
)
def test_several_changed_bytes_end_in_a_checkpoint_or_a_checkpoint_error(
    read: Read, ckpt: CkptWriter, edits: list[tuple[int, int]], cut: int
) -> None:
    content = bytearray(ckpt.sample())
    for position, value in edits:
        content[position % len(content)] = value
    try:
        assert isinstance(read(bytes(content[: len(content) - cut])), Checkpoint)
    except CheckpointError as error:
        assert error.problem


def test_a_file_cut_after_it_was_read_has_no_values(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"a.weight": [1.0] * 100})
    checkpoint, whole = read_checkpoint(path), path.read_bytes()
    assert values(checkpoint, "a.weight").tolist() == [1.0] * 100
    for lost in (1, 3, 4, 399, 400, len(whole)):
        path.write_bytes(whole[:-lost])
        with pytest.raises(CheckpointError, match="got shorter while it was read"):
            values(checkpoint, "a.weight")
