"""``group_info.pb`` is read without MindSpore, and nothing else is taken for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.observe.checkpoints import group_info
from chaos.observe.checkpoints.group_info import GroupInfoError, find_group_infos, read_group_info

RANKS_0_4 = b"\x12\x04\x08\x00\x08\x04"
"""As MindSpore writes it: field 2, four bytes, twice field 1 as a number."""


def a_file(directory: Path, content: bytes) -> Path:
    path = directory / "group_info.pb"
    path.write_bytes(content)
    return path


def test_the_ranks_are_read(tmp_path: Path) -> None:
    info = read_group_info(a_file(tmp_path, RANKS_0_4))
    assert (info.restore_ranks, info.groups) == ((0, 4), {})


def test_large_ranks_and_packed_ones_are_read(tmp_path: Path) -> None:
    assert read_group_info(a_file(tmp_path, b"\x12\x05\x08\xac\x02\x08\x07")).restore_ranks == (7, 300)
    assert read_group_info(a_file(tmp_path, b"\x12\x05\x0a\x03\x07\xac\x02")).restore_ranks == (7, 300)


def test_communication_groups_are_read_by_their_names(tmp_path: Path) -> None:
    item = b"\x0a\x02dp\x12\x04\x08\x01\x08\x05"
    info = read_group_info(a_file(tmp_path, b"\x0a" + bytes([len(item)]) + item + RANKS_0_4))
    assert info.groups == {"dp": (1, 5)}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (RANKS_0_4[:-1], "the protobuf data is broken"),
        (b"ckpt", "protobuf data is broken"),
        (b"\x0a\x00", "has no list of ranks"),
        (b"\x12\x00", "the list of ranks to restore from is empty"),
        (b"\x12\x04\x08\x01\x08\x01", "has a rank twice"),
        (RANKS_0_4 + b"\x18\x01", "a field that the message does not have"),
        (b"\x12\x06\x08\x00\x08\x04\x10\x01", "a field that the message does not have"),
        (b"\x0a\x08\x0a\x02dp\x12\x02\x08\x01" * 2 + RANKS_0_4, "names communication group 'dp' twice"),
    ],
)
def test_what_is_no_group_information_is_refused_with_its_reason(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(GroupInfoError, match=said) as error:
        read_group_info(a_file(tmp_path, content))
    assert str(tmp_path / "group_info.pb") in str(error.value)


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GroupInfoError, match="cannot be read: No such file"):
        read_group_info(tmp_path / "group_info.pb")
    monkeypatch.setattr(group_info, "MAX_BYTES", 5)
    with pytest.raises(GroupInfoError, match="is larger than 5 bytes"):
        read_group_info(a_file(tmp_path, RANKS_0_4))


def test_files_are_found_by_the_directory_of_their_rank(tmp_path: Path) -> None:
    for name in ("checkpoints/rank_0", "checkpoints/rank_12", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
        a_file(tmp_path / name, RANKS_0_4)
    (tmp_path / "checkpoints" / "rank_3").mkdir()
    (tmp_path / "checkpoints" / "rank_3" / "group_info.pb").symlink_to(tmp_path / "elsewhere" / "group_info.pb")
    found = find_group_infos(tmp_path)
    assert {rank: path.parent.name for rank, path in found.items()} == {0: "rank_0", 12: "rank_12"}
    assert find_group_infos(tmp_path / "nothing") == {}
