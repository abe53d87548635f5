"""Files that MindSpore 2.10 wrote on a CPU after five steps, and the digests taken inside that process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.observe.checkpoints.checkpoint import CheckpointError, read_checkpoint
from tests.unit.observe.values import values

APPENDED_ON_FAILURE = {
    "global_step": 5,
    "epoch_num": 1,
    "step_num": 5,
    "cur_rank": 2,
    "batch_num": 8,
    "loss_scale": 1024.0,
}


@pytest.mark.parametrize("name", ["ttp_rank_2-1_5.ckpt", "all_types.safetensors"])
def test_digests_equal_those_computed_in_the_training_process(data: Path, name: str) -> None:
    in_process = json.loads((data / "digests_in_process.json").read_text())
    checkpoint = read_checkpoint(data / name)
    assert {tensor: checkpoint.tensors[tensor].digest for tensor in checkpoint.tensors} == in_process
    assert {"bf16", "half", "flag", "scalar", "global_step", "moments.fc.weight"} <= set(in_process)


def test_values_appended_by_the_failure_handler_are_apart_from_the_parameters(data: Path) -> None:
    checkpoint = read_checkpoint(data / "ttp_rank_2-1_5.ckpt")
    assert checkpoint.values == APPENDED_ON_FAILURE
    assert set(checkpoint.values) & set(checkpoint.tensors) == {"global_step"}
    assert checkpoint.crc == "absent"


def test_a_file_with_a_crc_is_verified_and_its_texts_are_read(data: Path) -> None:
    checkpoint = read_checkpoint(data / "with_crc.ckpt")
    assert checkpoint.crc == "verified"
    assert checkpoint.values["note"] == "héllo"
    assert read_checkpoint(data / "with_crc.safetensors").crc == "verified"


def changed_bytes_that_pass(sound: Path, path: Path) -> list[int]:
    content = sound.read_bytes()
    passed = []
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0x01]) + content[position + 1 :])
        try:
            read_checkpoint(path)
        except CheckpointError as error:
            assert path.name in str(error)
        else:
            passed.append(position)
    return passed


def test_any_changed_byte_of_a_ckpt_is_seen_by_its_crc(data: Path, tmp_path: Path) -> None:
    """A change inside the mark of the trailer makes it an unknown record instead."""
    assert changed_bytes_that_pass(data / "with_crc.ckpt", tmp_path / "changed.ckpt") == []


def test_any_changed_byte_of_the_content_of_a_safetensors_is_seen_by_its_crc(data: Path, tmp_path: Path) -> None:
    """MindSpore's CRC leaves out the types and the metadata, so some changes in the header pass."""
    sound = data / "with_crc.safetensors"
    header = 8 + int.from_bytes(sound.read_bytes()[:8], "little")
    passed = changed_bytes_that_pass(sound, tmp_path / "changed.safetensors")
    assert [position for position in passed if position >= header] == []


def test_numbers_are_found_whether_appended_or_parameters(data: Path) -> None:
    checkpoint = read_checkpoint(data / "all_types.safetensors")
    assert [checkpoint.number(name) for name in ("step_num", "global_step", "epoch_num")] == [5, 5, 1]
    assert [checkpoint.number(name) for name in ("cur_rank", "flag", "scalar", "fc.weight")] == [None] * 4


def test_bfloat16_is_given_as_its_bits(data: Path) -> None:
    checkpoint = read_checkpoint(data / "ttp_rank_2-1_5.ckpt")
    tensor, bits = checkpoint.tensors["bf16"], values(checkpoint, "bf16")
    assert (tensor.dtype, tensor.shape, str(bits.dtype)) == ("bfloat16", (1, 2), "uint16")
    assert (bits.astype("uint32") << 16).view("float32").tolist() == [[1.5, -2.0]]
