"""Files of sliced weights: the file that a rank starts from, and the ranks with the same slice (``group_info.pb``)."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence

GROUP_INFO = "group_info.pb"

_CRC, _CRC_SIZE = b"crc_num", 17
"""The beginning of a checksum behind a checkpoint, and its length."""


def write_group_info(directory: str, replicas: Sequence[int]) -> None:
    """Write MindSpore's message on Ascend when GROUP_INFO_FILE is set: the ranks with the same slices."""
    from mindspore.train.node_strategy_pb2 import ParallelGroupMap

    message = ParallelGroupMap()
    message.ckpt_restore_rank_list.dim.extend(replicas)
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, GROUP_INFO)
    with open(path + ".tmp", "wb") as file:
        file.write(message.SerializeToString())
    os.replace(path + ".tmp", path)


def find_slice(output: str, rank: int, ranks: int, replicas: Sequence[int]) -> str | None:
    """Return the file that a rank resumes from, of the newest step with a file for every rank, its own or a replica's.

    None where there is no such step.

    A finished (renamed) end-of-life checkpoint has one file for each replica group; a rank knows its replicas from its
    communication group. In periodic checkpoints a lost file is replaced by a file of the ranks that ``group_info.pb``
    names. All ranks look at the same files, so they come to the same step.
    """
    periodic = _periodic(output, ranks)
    end_of_life = _end_of_life(output, replicas)
    step = max([*periodic, *end_of_life], default=None)
    if step is None:
        return None
    if step in end_of_life:
        return end_of_life[step]
    return periodic[step][rank]


def _end_of_life(output: str, replicas: Sequence[int]) -> dict[int, str]:
    """Return the file of this rank's replica group in each finished end-of-life checkpoint, by step.

    MindSpore 2.7 names the directory ``tft_…``, later versions ``ttp_…``.
    """
    files_by_step = {}
    for directory in glob.glob(os.path.join(output, "t[tf][pt]_saved_checkpoints-step_*")):
        match = re.search(r"step_(\d+)$", directory)
        files = [file for rank in replicas for file in glob.glob(os.path.join(directory, f"rank_{rank}", "*.ckpt"))]
        if match and files:
            files_by_step[int(match[1])] = sorted(files)[0]
    return files_by_step


def _periodic(output: str, ranks: int) -> dict[int, dict[int, str]]:
    """Return the file of every rank, for each complete step."""
    replicas = _read_group_infos(output)
    steps_by_rank = {rank: _by_step(os.path.join(output, f"rank_{rank}")) for rank in range(ranks)}
    complete: dict[int, dict[int, str]] = {}
    for step in {step for files in steps_by_rank.values() for step in files}:
        chosen = {
            rank: steps_by_rank[holder][step]
            for rank in range(ranks)
            for holder in reversed([rank, *replicas.get(rank, [])])
            if step in steps_by_rank.get(holder, {})
        }
        if len(chosen) == ranks:
            complete[step] = chosen
    return complete


def _read_group_infos(output: str) -> dict[int, list[int]]:
    """Return the ranks with the same slices, by rank, from the remaining files: a lost rank's file is lost with it."""
    import mindspore as ms

    replicas: dict[int, list[int]] = {}
    for path in sorted(glob.glob(os.path.join(output, "rank_*", GROUP_INFO))):
        members = ms.restore_group_info_list(path)
        for rank in members:
            replicas.setdefault(rank, members)
    return replicas


def _by_step(directory: str) -> dict[int, str]:
    """Return a rank's periodic files by the step stored in them.

    Their names count from the last resume or repair.
    """
    files = {}
    for path in sorted(glob.glob(os.path.join(directory, "*.ckpt"))):
        step = stored_step(path)
        if step is not None:
            files[step] = path
    return files


def stored_step(path: str) -> int | None:
    """Return the optimizer's step in a checkpoint file, None for a file that is damaged or has none."""
    from google.protobuf.message import DecodeError
    from mindspore.train.checkpoint_pb2 import Checkpoint

    checkpoint = Checkpoint()
    try:
        with open(path, "rb") as file:
            content = file.read()
        if content[-_CRC_SIZE:].startswith(_CRC):
            content = content[:-_CRC_SIZE]
        checkpoint.ParseFromString(content)
    except (OSError, DecodeError):
        return None
    for value in checkpoint.value:
        if value.tag == "global_step":
            return int.from_bytes(value.tensor.tensor_content, "little")
    return None
