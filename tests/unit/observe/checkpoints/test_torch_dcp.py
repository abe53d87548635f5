"""Directories of ``torch.distributed.checkpoint`` are read as one checkpoint, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chaos.agent.digest import tensor_digest
from chaos.observe.checkpoints.checkpoint import CheckpointError, CheckpointNotSupported, read_checkpoint
from tests.kit.checkpoints.torch_dcp import METADATA, DcpWriter, job_directory
from tests.kit.checkpoints.torch_save import Called, TorchSave


def digest(array: Any) -> str:
    return tensor_digest("float32", array.shape, np.ascontiguousarray(array).tobytes())


def test_a_directory_is_one_checkpoint_of_whole_tensors(tmp_path: Path) -> None:
    checkpoint = read_checkpoint(job_directory(4).write(tmp_path))
    weight = np.arange(12, dtype=np.float32).reshape(4, 3) + 4
    assert checkpoint.tensors["model.net.weight"].digest == digest(weight)
    assert checkpoint.tensors["optim.state.net.weight.exp_avg"].digest == digest(weight / 8)
    assert checkpoint.shards["model.net.weight"] == {0: digest(weight[:2]), 1: digest(weight[2:])}
    assert checkpoint.about_save == {"global_step": 4, "script_step": 4}
    assert checkpoint.values == {
        "optim.param_groups.0.params.0": "net.weight",
        "optim.param_groups.0.lr": 0.1,
        "step": 4,
    }
    assert checkpoint.crc == "verified"


def test_names_are_those_that_a_rank_has(tmp_path: Path) -> None:
    """The metadata says which dictionaries were saved; the optimizer lists its weights by name."""
    writer = job_directory(4)
    slot = ("optim", "state", "net.weight")
    writer.paths = {
        "model.net.weight": ("model", "net.weight"),
        "optim.state.net.weight.exp_avg": (*slot, "exp_avg"),
        "optim.state.net.weight.step": (*slot, "step"),
        "optim.param_groups.0.params": ("optim", "param_groups", 0, "params"),
        "step": ("step",),
    }
    checkpoint = read_checkpoint(writer.write(tmp_path))
    assert list(checkpoint.tensors) == ["net.weight", "optimizer.exp_avg.0", "optimizer.step.0"]
    assert [tensor.name for tensor in checkpoint.tensors.values()] == list(checkpoint.tensors)
    assert list(checkpoint.shards) == ["net.weight", "optimizer.exp_avg.0"]
    assert checkpoint.about_save == {"global_step": 4, "script_step": 4}


W = np.arange(60, dtype=np.float32).reshape(5, 4, 3)
A, B = slice(0, 2), slice(2, None)


@pytest.mark.parametrize(
    "places",
    [
        [(slice(0, 3),), (slice(3, 5),)],
        [(slice(0, 5), A), (slice(0, 5), B)],
        [(slice(0, 5), slice(0, 4), A), (slice(0, 5), slice(0, 4), B)],
        [(A, A), (A, B), (B, A), (B, B)],
        [(A, A, A), (A, A, B), (A, B), (B, slice(0, 1)), (B, slice(1, 4))],
        [(A, slice(0, 3)), (A, slice(3, 4)), (B, slice(0, 1)), (B, slice(1, 4))],
        [(slice(0, 5),), (slice(5, 5),)],
    ],
    ids=str,
)
def test_chunks_are_put_together_by_their_offsets(tmp_path: Path, places: Sequence[Sequence[slice]]) -> None:
    whole = [(rank, (*place, *[slice(0, None)] * (3 - len(place)))) for rank, place in enumerate(places)]
    writer = DcpWriter()
    writer.tensor("w", W, whole[::-1])
    checkpoint = read_checkpoint(writer.write(tmp_path))
    assert checkpoint.tensors["w"].digest == digest(W)


@pytest.mark.parametrize(
    ("places", "problem"),
    [
        ([(slice(0, 3),)], "the parts of tensor 'w' have 36 values, and the tensor has 60"),
        ([(slice(0, 3),), (slice(2, 4),)], "overlap"),
        ([(slice(0, 5), A), (slice(0, 5), slice(1, 3))], "overlap"),
    ],
)
def test_chunks_that_are_not_the_tensor_are_damage(
    tmp_path: Path, places: Sequence[Sequence[slice]], problem: str
) -> None:
    writer = DcpWriter()
    writer.tensor("w", W, [(n, (*place, *[slice(0, None)] * (3 - len(place)))) for n, place in enumerate(places)])
    with pytest.raises(CheckpointError, match=problem) as caught:
        read_checkpoint(writer.write(tmp_path))
    assert not isinstance(caught.value, CheckpointNotSupported)


def test_every_flipped_bit_of_a_tensor_is_seen_and_names_its_file(tmp_path: Path) -> None:
    path = job_directory(4).write(tmp_path)
    places = [piece for piece in read_checkpoint(path).pieces if piece.file.name == "__1_0.distcp"]
    assert places
    file = tmp_path / "__1_0.distcp"
    whole = file.read_bytes()
    for piece in places:
        for at in range(piece.place.at, piece.place.end):
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            with pytest.raises(CheckpointError, match="the content was changed") as caught:
                read_checkpoint(path)
            assert caught.value.path == file


def test_a_file_that_is_missing_cut_off_or_longer_is_damage(tmp_path: Path) -> None:
    path = job_directory(4).write(tmp_path)
    file = tmp_path / "__1_0.distcp"
    whole = file.read_bytes()
    for content in (whole[:-1], whole[: len(whole) // 2], b"", whole + b"x", whole[: len(whole) // 2] + bytes(99)):
        file.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"__1_0\.distcp.*cut off, or of another save"):
            read_checkpoint(path)
    file.write_bytes(whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2))
    with pytest.raises(CheckpointError, match=r"__1_0\.distcp"):
        read_checkpoint(path)
    file.unlink()
    with pytest.raises(CheckpointError, match=r"\.metadata beside it names it"):
        read_checkpoint(path)


def test_damaged_metadata_is_damage(tmp_path: Path) -> None:
    path = job_directory(4).write(tmp_path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], bytes(len(whole)), b"x" * 99, b""):
        path.write_bytes(content)
        with pytest.raises(CheckpointError) as caught:
            read_checkpoint(path)
        assert not isinstance(caught.value, CheckpointNotSupported)


def test_a_file_of_an_older_save_shows_only_by_its_digests(tmp_path: Path) -> None:
    old, new = (read_checkpoint(job_directory(step).write(tmp_path / str(step))) for step in (4, 8))
    (tmp_path / "8" / "__0_0.distcp").write_bytes((tmp_path / "4" / "__0_0.distcp").read_bytes())
    mixed = read_checkpoint(new.path)
    name = "model.net.weight"
    assert mixed.shards[name] == {0: old.shards[name][0], 1: new.shards[name][1]}
    assert mixed.tensors[name].digest not in (old.tensors[name].digest, new.tensors[name].digest)
    assert mixed.about_save == new.about_save


def _with(**changes: Any) -> bytes:
    """Metadata with changed fields of the place of its only item."""
    writer = DcpWriter()
    writer.value("a", 1)
    (key,) = writer.stored
    writer.stored[key] |= changes
    return writer.metadata()


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        (_with(relative_path="../other"), "outside of the directory"),
        (_with(relative_path="/etc/passwd"), "outside of the directory"),
        (_with(offset=-1), "without a name or place"),
        (_with(offset=1), "a gap between them"),
        (_with(length=1 << 61), "cut off, or of another save"),
        (TorchSave().pickle(Called(f"{METADATA}.Metadata", (), {})), "lacks its tables"),
        (TorchSave().pickle(Called(f"{METADATA}.Other", (), {})), "in place of a Metadata"),
    ],
)
def test_metadata_that_contradicts_the_directory_is_damage(tmp_path: Path, metadata: bytes, problem: str) -> None:
    writer = DcpWriter()
    writer.value("a", 1)
    path = writer.write(tmp_path)
    path.write_bytes(metadata)
    with pytest.raises(CheckpointError, match=problem) as caught:
        read_checkpoint(path)
    assert not isinstance(caught.value, CheckpointNotSupported)


def test_transformed_items_are_unknown(tmp_path: Path) -> None:
    writer = DcpWriter()
    writer.value("a", 1)
    path = writer.write(tmp_path)
    path.write_bytes(_with(transform_descriptors=["zstd"]))
    with pytest.raises(CheckpointNotSupported, match="compressed or otherwise transformed"):
        read_checkpoint(path)


def test_an_item_that_is_no_stream_of_torch_save_is_unknown(tmp_path: Path) -> None:
    path = job_directory(4).write(tmp_path)
    file = tmp_path / "__0_0.distcp"
    file.write_bytes(b"x" + file.read_bytes()[1:])
    with pytest.raises(CheckpointNotSupported, match=r"no stream of torch\.save, or its first bytes are damaged"):
        read_checkpoint(path)
