"""What processes leave when they do not end in order is known by what is in it, not by its name alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.base.walking import raise_unseen
from chaos.observe.leftovers import find_leftovers

CORE = b"\x7fELF\x02\x01\x01" + bytes(9) + (4).to_bytes(2, "little") + bytes(8)
BIG = b"\x7fELF\x02\x02\x01" + bytes(9) + (4).to_bytes(2, "big") + bytes(8)
PROGRAM = b"\x7fELF\x02\x01\x01" + bytes(9) + (3).to_bytes(2, "little") + bytes(8)


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("core", CORE, ("core", None)),
        ("core.4711", CORE, ("core", 4711)),
        ("core-python-11", BIG, ("core", None)),
        ("python.core", CORE, ("core", None)),
        ("core", b"the core of the model", None),
        ("core.json", PROGRAM, None),
        ("core", CORE[:17], None),
        ("score", CORE, None),
        ("train.lock", b"4711\n", ("lock", 4711)),
        ("train.pid", b"4711", ("lock", 4711)),
        ("train.lock", b"", None),
        ("train.lock", b"held by 4711", None),
        ("train.lock", b"9" * 40, None),
        ("train.txt", b"4711", None),
    ],
)
def test_a_leftover_is_known_by_its_content(
    tmp_path: Path, name: str, content: bytes, found: tuple[str, int | None] | None
) -> None:
    (tmp_path / "rank_0").mkdir()
    (tmp_path / "rank_0" / name).write_bytes(content)
    entries = [(leftover.kind, leftover.pid) for leftover in find_leftovers(tmp_path, raise_unseen)]
    assert entries == ([] if found is None else [found])


def test_what_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(CORE)
    (tmp_path / "core").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "train.lock")
    assert find_leftovers(tmp_path, raise_unseen) == []
