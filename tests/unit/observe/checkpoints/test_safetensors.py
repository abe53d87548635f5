"""Safetensors files are read by a strict parser of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.observe.checkpoints.checkpoint import Checkpoint, CheckpointError, CheckpointNotSupported, read_checkpoint
from tests.kit.examples import examples

Read = Callable[[bytes], Checkpoint]
SOUND = {
    "__metadata__": {"format": "ms"},
    "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
    "step_num": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]},
}
CONTENT = bytes(8) + (7).to_bytes(8, "little")


@pytest.fixture(scope="session")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    # The name says nothing: the content decides.
    path = tmp_path_factory.mktemp("safetensors") / "rank_0-1_5.ckpt"

    def read(content: bytes) -> Checkpoint:
        path.write_bytes(content)
        return read_checkpoint(path)

    return read


def built(header: Any, content: bytes = CONTENT) -> bytes:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return len(text).to_bytes(8, "little") + text + content


def entry(dtype: Any, shape: Any, offsets: Any) -> dict[str, Any]:
    return {"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


def test_a_sound_file_is_read_whatever_its_name(read: Read) -> None:
    checkpoint = read(built(SOUND))
    assert (list(checkpoint.tensors), checkpoint.values, checkpoint.crc) == (["a"], {"step_num": 7}, "absent")


def test_a_tensor_that_was_saved_once_for_two_names_is_read_under_both(read: Read) -> None:
    """PyTorch's ``save_model`` notes in the metadata which names of tied weights it leaves out."""
    metadata = {"format": "pt", "head": "a", "a": "step_num", "lost": "nowhere"}
    checkpoint = read(built({**SOUND, "__metadata__": metadata}))
    assert list(checkpoint.tensors) == ["a", "head"]
    head, kept = checkpoint.tensors["head"], checkpoint.tensors["a"]
    assert (head.name, head.digest, head.shape) == ("head", kept.digest, kept.shape)


def with_number(value: int) -> bytes:
    header = {"__metadata__": {"crc_num": "1"}, "n": {"dtype": "I64", "shape": [], "data_offsets": [0, 8]}}
    return built(header, value.to_bytes(8, "little", signed=True))


def test_a_crc_that_would_take_too_long_is_told_apart_from_one_that_cannot_be(read: Read) -> None:
    """MindSpore's CRC of the number n is that of n zero bytes."""
    with pytest.raises(CheckpointNotSupported, match="too many"):
        read(with_number(1 << 33))
    for impossible in (-1, 1 << 50):
        with pytest.raises(CheckpointError, match="cannot have computed") as caught:
            read(with_number(impossible))
        assert not isinstance(caught.value, CheckpointNotSupported)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (built(SOUND, CONTENT[:-1]), "truncated"),
        (built(SOUND, CONTENT + b"?"), "1 bytes after the last tensor"),
        (built({**SOUND, "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}), "a gap or an overlap"),
        (built(entry("F32", [2], [4, 12])), "a gap or an overlap"),
        (built(entry("F32", [3], [0, 16])), r"F32 \[3\] needs 12"),
        (built(entry("F32", [-4], [0, 16])), "impossible shape"),
        (built(entry("F32", [True, 4], [0, 16])), "impossible shape"),
        (built(entry("F32", [4.0], [0, 16])), "impossible shape"),
        (built(entry("F32", [4], [0, 16, 16])), "impossible offsets"),
        (built(entry("F33", [4], [0, 16])), "type 'F33'"),
        (built(entry(["F32"], [4], [0, 16])), "type"),
        (built({"a": {"dtype": "F32", "shape": [4]}}), "dtype, shape and data_offsets"),
        (built({"a": {**entry("F32", [4], [0, 16])["a"], "x": 1}}), "nothing else"),
        (built({"__metadata__": {"format": 1}, **entry("F32", [4], [0, 16])}), "metadata"),
        (built({"__metadata__": {"crc_num": "1"}, **entry("F32", [4], [0, 16])}), "the stored CRC"),
        (built('{"a": 1, "a": 2}'), "there twice"),
        (built('{"a": NaN}'), "not JSON"),
        (built("{" + '"a":{' * 50_000), "not sound JSON"),
        (built("{}", b""), "no tensors"),
        (built(entry("BOOL", [16], [0, 16]), b"\x02" * 16), "neither 0 nor 1"),
    ],
)
def test_damage_is_refused(read: Read, content: bytes, expected: str) -> None:
    with pytest.raises(CheckpointError, match=expected):
        read(content)


def test_a_type_of_eight_bits_is_told_apart_from_damage(read: Read) -> None:
    with pytest.raises(CheckpointNotSupported):
        read(built(entry("F8_E4M3", [16], [0, 16])))


def test_a_file_cut_anywhere_is_refused(read: Read, data: Path) -> None:
    sound = (data / "all_types.safetensors").read_bytes()
    for length in range(len(sound)):
        with pytest.raises(CheckpointError):
            read(sound[:length])


@examples(120)
@given(edits=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), min_size=1, max_size=6))
def test_changed_bytes_end_in_a_checkpoint_or_a_checkpoint_error(
    read: Read, data: Path, edits: list[tuple[int, int]]
) -> None:
    content = bytearray((data / "all_types.safetensors").read_bytes())
    for position, value in edits:
        content[position % len(content)] = value
    try:
        assert isinstance(read(bytes(content)), Checkpoint)
    except CheckpointError as error:
        assert error.problem
