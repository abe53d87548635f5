"""``group_info.pb``. Documented: GroupInfoError."""

from __future__ import annotations

from pathlib import Path

from chaos.observe.checkpoints.group_info import GROUP_INFO, GroupInfoError, read_group_info
from tests.fuzz.mutate import mutate_bytes
from tests.fuzz.target import Target


def check(content: bytes, folder: Path) -> None:
    """Read it."""
    path = folder / GROUP_INFO
    path.write_bytes(content)
    try:
        info = read_group_info(path)
    except GroupInfoError as error:
        assert GROUP_INFO in str(error) and len(str(error)) < 2000
        return
    assert info.restore_ranks and all(0 <= rank < 1 << 32 for rank in info.restore_ranks)


TARGET = Target("group_info", mutate_bytes, check)
