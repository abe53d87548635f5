"""Reader of ``group_info.pb``: which ranks hold the same slices of the weights, as MindSpore records it.

MindSpore writes the file on Ascend where GROUP_INFO_FILE is set. Facts from ``mindspore/train/node_strategy_pb2.py``
(2.10): ``ParallelGroupMap {repeated ParallelGroupItem parallel_group_item = 1; required ParallelGroupRanks
ckpt_restore_rank_list = 2}``; ``ParallelGroupRanks {repeated uint32 dim = 1 (not packed)}``; ``ParallelGroupItem
{required string group_name = 1; required ParallelGroupRanks parallel_group_ranks = 2}``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from chaos.base.plain_files import read_plain
from chaos.base.walking import Unseen, raise_unseen, walk

GROUP_INFO = "group_info.pb"
MAX_BYTES = 4 << 20
"""The size of the file for a million ranks."""

MAX_GROUPS = 10_000
"""Most communication groups of one rank; some dozens are usual."""

_LONGEST = 1000
_PACKAGE = "chaos.observe.groups"


class GroupInfoError(Exception):
    """The file cannot be read as group information. The text names the file and the mistake in it."""

    def __init__(self, path: Path, problem: str) -> None:
        problem = problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}…"
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}")


@dataclass(frozen=True)
class GroupInfo:
    """``restore_ranks`` hold the same checkpoint, in order. ``groups`` are communication groups by their names."""

    restore_ranks: tuple[int, ...]
    groups: dict[str, tuple[int, ...]]


def read_group_info(path: Path) -> GroupInfo:
    """Read one file; nothing in it is executed, and at most MAX_BYTES are read.

    Raises GroupInfoError if it is missing, too large, or not exactly such a message.
    """
    try:
        raw = read_plain(path, MAX_BYTES)
    except OSError as error:
        raise GroupInfoError(path, str(error.strerror)) from error
    if not raw:
        raise GroupInfoError(path, "is empty")
    try:
        return _parse(raw)
    except ValueError as error:
        raise GroupInfoError(path, str(error)) from error


def find_group_infos(root: Path, unseen: Unseen = raise_unseen) -> dict[int, Path]:
    """Return the files under ``root``, by the rank of the directory (``rank_R``) that holds them. Skips links.

    ``unseen`` receives each path that cannot be read; without ``unseen`` an OSError is raised instead.
    """
    paths: dict[int, Path] = {}
    for directory, subdirectories, files in walk(root, unseen):
        subdirectories.sort()
        path = Path(directory, GROUP_INFO)
        rank = Path(directory).name.removeprefix("rank_")
        if GROUP_INFO in files and rank.isdecimal() and not path.is_symlink():
            paths.setdefault(int(rank), path)
    return paths


def _parse(raw: bytes) -> GroupInfo:
    from google.protobuf.message import DecodeError
    from google.protobuf.unknown_fields import UnknownFieldSet

    message = _message_class()()
    try:
        message.ParseFromString(raw)
    except (DecodeError, RecursionError, ValueError) as error:
        raise ValueError("is not group information: the protobuf data is broken") from error
    if len(message.parallel_group_item) > MAX_GROUPS:
        raise ValueError(f"is not group information: it names more than {MAX_GROUPS} communication groups")
    parts = [message, message.ckpt_restore_rank_list]
    parts += [part for item in message.parallel_group_item for part in (item, item.parallel_group_ranks)]
    if any(len(UnknownFieldSet(part)) for part in parts):
        raise ValueError("is not group information: it has a field that the message does not have")
    if not message.HasField("ckpt_restore_rank_list"):
        raise ValueError("is not group information: it has no list of ranks to restore from")
    groups: dict[str, tuple[int, ...]] = {}
    for item in message.parallel_group_item:
        name = item.group_name.decode("utf-8", "replace")
        if name in groups:
            raise ValueError(f"names communication group {name!r} twice")
        groups[name] = _ranks(item.parallel_group_ranks.dim, f"communication group {name!r}")
    return GroupInfo(_ranks(message.ckpt_restore_rank_list.dim, "the list of ranks to restore from"), groups)


def _ranks(listed: Any, what: str) -> tuple[int, ...]:
    ranks = tuple(sorted(int(rank) for rank in listed))
    if not ranks:
        raise ValueError(f"{what} is empty")
    if len(set(ranks)) < len(ranks):
        raise ValueError(f"{what} has a rank twice: {list(ranks)[:20]}")
    return ranks


@cache
def _message_class() -> Any:
    """Return the class of the message, from its own descriptor pool: MindSpore's messages may be in the default one.

    Texts are declared as bytes and no field as required, which is the same on the wire: implementations of protobuf
    differ in their strictness about both.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="chaos/observe/groups.proto", package=_PACKAGE, syntax="proto2")
    ranks = file.message_type.add(name="ParallelGroupRanks")
    ranks.field.add(name="dim", number=1, label=kind.LABEL_REPEATED, type=kind.TYPE_UINT32)
    item = file.message_type.add(name="ParallelGroupItem")
    item.field.add(name="group_name", number=1, label=kind.LABEL_OPTIONAL, type=kind.TYPE_BYTES)
    whole = file.message_type.add(name="ParallelGroupMap")
    for message, name, number, label, of in (
        (item, "parallel_group_ranks", 2, kind.LABEL_OPTIONAL, "ParallelGroupRanks"),
        (whole, "parallel_group_item", 1, kind.LABEL_REPEATED, "ParallelGroupItem"),
        (whole, "ckpt_restore_rank_list", 2, kind.LABEL_OPTIONAL, "ParallelGroupRanks"),
    ):
        message.field.add(name=name, number=number, label=label, type=kind.TYPE_MESSAGE, type_name=f".{_PACKAGE}.{of}")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.ParallelGroupMap"))
