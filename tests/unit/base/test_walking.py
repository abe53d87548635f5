"""Walks see what the standard library's do, and neither fail by depth nor pass over it unseen."""

from __future__ import annotations

import errno
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.base.walking import MAX_LEVELS, TooDeep, entries_below, raise_too_deep, raise_unseen, walk, walk_opened
from tests.unit.conftest import MakeDeep

Walked = Iterator[tuple[str, list[str], list[str]]]


def tree(place: Path, seed: int) -> Path:
    """Directories, files, pipes and links of all kinds."""
    draw = random.Random(seed)
    directories = [place / "tree"]
    directories[0].mkdir()
    for number in range(draw.randrange(80)):
        path = draw.choice(directories) / draw.choice([f"{number}", f".{number}", f"{number} ä_tmp", f"{number}-x.tmp"])
        match draw.randrange(6):
            case 0 | 1:
                path.mkdir()
                directories.append(path)
            case 2 | 3:
                path.touch()
            case 4:
                path.symlink_to(draw.choice([*map(str, directories), str(place), "nowhere", path.name]))
            case 5:
                os.mkfifo(path)
    return directories[0]


def descriptors(top: Path) -> int:
    """How many descriptors lead to ``top`` and below, whatever other threads of this process open meanwhile."""
    found = 0
    for path in Path("/proc/self/fd").iterdir():
        try:
            found += path.readlink().is_relative_to(top)
        except FileNotFoundError:  # closed since it was listed
            continue
        except OSError as error:
            assert error.errno == errno.ENAMETOOLONG
            found += 1
    return found


def by_descriptors(top: Path, onerror: Callable[[OSError], None] | None = None) -> Walked:
    opened = os.open(top, os.O_RDONLY)
    try:
        for path, directories, others, descriptor in walk_opened(opened, onerror):
            assert sorted(os.listdir(descriptor)) == sorted(directories + others)  # noqa: PTH208 - no path
            yield str(top / path), directories, others
    finally:
        os.close(opened)


def seen(walked: Walked) -> list[tuple[str, list[str], list[str]]]:
    """In the order of the walk; that of names is the file system's."""
    return [(path, list(directories), list(others)) for path, directories, others in walked]


@pytest.mark.parametrize("seed", range(25))
def test_it_is_what_the_standard_library_walks(tmp_path: Path, seed: int) -> None:
    top = tree(tmp_path, seed)
    expected = seen(os.walk(top))
    assert seen(walk(top, raise_unseen)) == seen(walk(str(top))) == expected
    assert seen(by_descriptors(top, raise_unseen)) == expected
    assert entries_below(top, raise_unseen) == sorted(top.rglob("*"))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("of", [walk, by_descriptors])
def test_directories_may_be_left_out_and_ordered(of: Callable[[Path], Walked], tmp_path: Path, seed: int) -> None:
    top = tree(tmp_path, seed)

    def pruned(walked: Walked) -> Walked:
        for path, directories, others in walked:
            directories[:] = sorted((name for name in directories if not name.startswith(".")), reverse=True)
            yield path, directories, others

    assert seen(pruned(of(top))) == seen(pruned(os.walk(top)))


def test_a_link_is_followed_at_the_top_only(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "a").mkdir(parents=True)
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "elsewhere")
    assert entries_below(tmp_path / "top") == [tmp_path / "top" / "link"]
    assert entries_below(tmp_path / "top" / "link") == [tmp_path / "top" / "link" / "a"]


@pytest.mark.parametrize("of", [walk, by_descriptors])
@pytest.mark.parametrize("instead", ["nothing", "a link", "a pipe"])
def test_what_has_gone_when_its_turn_comes_is_no_error(of: Callable[..., Walked], instead: str, tmp_path: Path) -> None:
    (tmp_path / "top" / "a").mkdir(parents=True)
    (tmp_path / "elsewhere" / "b").mkdir(parents=True)
    paths = []
    for path, _, _ in of(tmp_path / "top", raise_unseen):
        paths.append(path)
        (tmp_path / "top" / "a").rmdir()
        if instead == "a link":
            (tmp_path / "top" / "a").symlink_to(tmp_path / "elsewhere")
        elif instead == "a pipe":
            os.mkfifo(tmp_path / "top" / "a")
    assert paths == [str(tmp_path / "top")]


def test_where_there_is_no_directory_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file", "none"):
        assert list(walk(tmp_path / name, raise_unseen)) == []
        assert entries_below(tmp_path / name, raise_unseen) == []


@pytest.mark.parametrize("of", [walk, by_descriptors])
def test_a_directory_that_cannot_be_read_is_told_by_its_path_and_the_others_are_seen(
    of: Callable[..., Walked], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/b", "c"):
        (tmp_path / name).mkdir(parents=True)
    closed = (tmp_path / "a" / "b").stat().st_ino
    scandir = os.scandir

    def refuse(place: str | int) -> object:
        if os.stat(place).st_ino == closed:  # noqa: PTH116 - maybe a descriptor
            raise PermissionError(13, "Permission denied", place)
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refuse)
    errors: list[OSError] = []
    assert len(list(of(tmp_path, errors.append))) == 3
    assert [(tmp_path / error.filename, error.strerror) for error in errors] == [
        (tmp_path / "a/b", "Permission denied")
    ]
    assert len(list(of(tmp_path, raise_too_deep))) == len(list(of(tmp_path))) == 3
    with pytest.raises(PermissionError):
        list(of(tmp_path, raise_unseen))


@pytest.mark.parametrize("of", [walk, by_descriptors])
def test_a_very_deep_directory_is_told_and_is_no_recursion(
    of: Callable[..., Walked], tmp_path: Path, make_deep: MakeDeep
) -> None:
    make_deep(tmp_path / "top")
    make_deep(tmp_path / "top" / "second", 300)
    (tmp_path / "top" / "third" / "z").mkdir(parents=True)
    before = descriptors(tmp_path)  # those of make_deep
    errors: list[OSError] = []
    walked = seen(of(tmp_path / "top", errors.append))
    assert len(walked) == 1 + 2 * MAX_LEVELS + 2
    assert str(tmp_path / "top" / "third" / "z") in {path for path, _, _ in walked}
    (error,) = errors
    assert isinstance(error, TooDeep) and error.strerror == "has more than 256 levels of directories below"
    assert (tmp_path / "top" / error.filename) == tmp_path / "top"
    assert len(seen(of(tmp_path / "top"))) == len(walked)
    for told in (raise_unseen, raise_too_deep):
        with pytest.raises(TooDeep, match=r": has more than 256 levels of directories below$"):
            list(of(tmp_path / "top", told))
    assert descriptors(tmp_path) == before


@pytest.mark.parametrize("of", [walk, by_descriptors])
def test_so_many_levels_and_no_more(of: Callable[..., Walked], tmp_path: Path, make_deep: MakeDeep) -> None:
    make_deep(tmp_path / "just", MAX_LEVELS)
    make_deep(tmp_path / "more", MAX_LEVELS + 1)
    assert len(list(of(tmp_path / "just", raise_unseen))) == 1 + MAX_LEVELS
    with pytest.raises(TooDeep):
        list(of(tmp_path / "more", raise_unseen))


def test_a_path_too_long_for_the_kernel_is_told_before_anybody_is_given_one(
    tmp_path: Path, make_deep: MakeDeep
) -> None:
    make_deep(tmp_path / "top", 20, "x" * 250)
    errors: list[OSError] = []
    for path, directories, others in walk(tmp_path / "top", errors.append):
        for name in directories + others:
            Path(path, name).lstat()
    assert [str(error) for error in errors] == [
        f"{tmp_path / 'top'}: has directories below with paths that are too long"
    ]
    with pytest.raises(TooDeep):
        entries_below(tmp_path / "top", raise_too_deep)
    assert len(list(by_descriptors(tmp_path / "top", raise_unseen))) == 21


def test_descriptors_are_bounded_and_a_walk_that_is_left_closes_them(tmp_path: Path, make_deep: MakeDeep) -> None:
    make_deep(tmp_path / "top")
    before, most = descriptors(tmp_path), 0
    walked = by_descriptors(tmp_path / "top")
    for number, _ in enumerate(walked):
        most = max(most, descriptors(tmp_path))
        if number == 100:
            break
    assert before < most <= before + MAX_LEVELS + 2
    walked.close()  # type: ignore[attr-defined]
    assert descriptors(tmp_path) == before


def test_the_recursion_limit_has_no_part_in_it(tmp_path: Path, make_deep: MakeDeep) -> None:
    make_deep(tmp_path / "top", MAX_LEVELS)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len_of_stack() + 60)
    try:
        counts = [len(list(of(tmp_path / "top"))) for of in (walk, by_descriptors)]
    finally:
        sys.setrecursionlimit(limit)
    assert counts == [1 + MAX_LEVELS] * 2


def len_of_stack() -> int:
    frame, count = sys._getframe(), 0
    while frame.f_back is not None:
        frame, count = frame.f_back, count + 1
    return count
