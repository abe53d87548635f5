"""The cache of good runs: made once, the user's own, and never served damaged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from chaos.base.file_lock import FileLock
from chaos.selftest import base as module
from chaos.selftest.base import BaseRuns, BaseUnusable, cache_directory, damage, manifest
from chaos.selftest.launcher import Launcher, Ran, RunFailed
from tests.kit.runs.good_run import GoodRun, good_run
from tests.unit.conftest import MakeDeep


class OneGoodRun(Launcher):
    """Makes the same run each time, and counts."""

    def __init__(self, run: GoodRun) -> None:
        super().__init__()
        self.made = 0
        self._run = run

    def run(self, scenario: Path, reports: Path, *, cores: int, options: Sequence[str] = ()) -> Ran:
        self.made += 1
        return Ran(self._run.write(reports / f"{scenario.stem}-{self.made}"), "pass")


class NoRun(Launcher):
    """A machine on which no run can be made."""

    def run(self, scenario: Path, reports: Path, *, cores: int, options: Sequence[str] = ()) -> Ran:
        raise RunFailed("chaos run ended with 64: this machine lacks MindSpore")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return cache_directory({"XDG_CACHE_HOME": str(tmp_path)})


def bases(cache: Path, launcher: Launcher) -> BaseRuns:
    making = cache / "making"
    making.mkdir(exist_ok=True)
    return BaseRuns(cache, making, launcher, {"mindspore": "2.10"})


def take(runs: BaseRuns, target: Path, notes: list[str]) -> Path:
    return runs.take("ttp", target, cores=1, note=notes.append)


def entry_of(cache: Path) -> Path:
    (found,) = (path for path in cache.glob("ttp-*") if path.is_dir())
    return found


def test_a_run_is_made_once_and_copied_each_time(cache: Path, tmp_path: Path) -> None:
    launcher, notes = OneGoodRun(good_run()), list[str]()
    first = take(bases(cache, launcher), tmp_path / "first", notes)
    second = take(bases(cache, launcher), tmp_path / "second", notes)
    assert launcher.made == 1
    assert manifest(first) == manifest(second) != {}
    assert notes == ["base ttp: making the run"]


@pytest.mark.parametrize("how", ["changed", "removed", "added", "linked", "no manifest"])
def test_a_damaged_entry_is_not_served_but_made_again(cache: Path, tmp_path: Path, how: str) -> None:
    launcher, notes = OneGoodRun(good_run()), list[str]()
    take(bases(cache, launcher), tmp_path / "first", notes)
    run = entry_of(cache) / "run"
    plan = run / "plan.json"
    match how:
        case "changed":
            plan.write_bytes(plan.read_bytes().replace(b'"seed": 1', b'"seed": 2'))
        case "removed":
            plan.unlink()
        case "added":
            (run / "history" / "train-rank_9-9.jsonl").write_text("{}\n", "utf-8")
        case "linked":
            plan.rename(tmp_path / "elsewhere")
            plan.symlink_to(tmp_path / "elsewhere")
        case _:
            (entry_of(cache) / "manifest.json").unlink()
    assert damage(entry_of(cache)) is not None
    take(bases(cache, launcher), tmp_path / "second", notes)
    assert launcher.made == 2
    assert "made again" in notes[1] or "again, since the kept one" in notes[1]
    assert damage(entry_of(cache)) is None


def test_a_run_that_is_not_green_is_no_base_and_is_not_kept(cache: Path, tmp_path: Path) -> None:
    spoilt = good_run()
    spoilt.only("rank.exit", attempt="resume", rank=3)["code"] = 1
    launcher, notes = OneGoodRun(spoilt), list[str]()
    with pytest.raises(BaseUnusable, match=r"base ttp is fail, not good: hygiene: .*exit code 1"):
        take(bases(cache, launcher), tmp_path / "first", notes)
    assert [path for path in cache.glob("ttp-*") if path.is_dir()] == []


def test_what_cannot_be_run_is_said(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(BaseUnusable, match=r"base ttp cannot be run: .*lacks MindSpore"):
        take(bases(cache, NoRun()), tmp_path / "first", [])


def test_other_versions_are_another_run(cache: Path, tmp_path: Path) -> None:
    launcher = OneGoodRun(good_run())
    take(bases(cache, launcher), tmp_path / "first", [])
    other = BaseRuns(cache, cache / "making", launcher, {"mindspore": "2.9"})
    take(other, tmp_path / "second", [])
    assert launcher.made == 2


def test_only_the_newest_runs_are_kept(cache: Path, tmp_path: Path) -> None:
    launcher = OneGoodRun(good_run())
    for number in range(6):
        runs = BaseRuns(cache, cache / "making", launcher, {"mindspore": f"2.{number}"})
        (cache / "making").mkdir(exist_ok=True)
        take(runs, tmp_path / str(number), [])
    assert len([path for path in cache.glob("ttp-*") if path.is_dir()]) == 3


def test_an_entry_is_locked_while_it_is_made(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = OneGoodRun(good_run())
    take(bases(cache, launcher), tmp_path / "first", [])
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.05)
    lock = FileLock.try_acquire(entry_of(cache).with_name(f"{entry_of(cache).name}.lock"))
    assert lock is not None
    with lock, pytest.raises(RuntimeError, match="another selftest makes it"):
        take(bases(cache, launcher), tmp_path / "second", [])


def test_the_cache_is_for_nobody_else(tmp_path: Path) -> None:
    path = cache_directory({"XDG_CACHE_HOME": str(tmp_path)})
    assert path.stat().st_mode & 0o777 == 0o700
    path.chmod(0o755)
    with pytest.raises(BaseUnusable, match="not a directory of this user alone"):
        cache_directory({"XDG_CACHE_HOME": str(tmp_path)})


def test_a_link_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "chaos").mkdir()
    (tmp_path / "chaos" / "selftest").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BaseUnusable, match="not a directory of this user alone"):
        cache_directory({"XDG_CACHE_HOME": str(tmp_path)})


def test_a_manifest_has_every_file(tmp_path: Path) -> None:
    run = good_run().write(tmp_path / "run")
    names = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert set(manifest(run)) == names
    assert json.loads(json.dumps(manifest(run))) == manifest(run)


def test_a_manifest_says_what_was_not_looked_at(tmp_path: Path, make_deep: MakeDeep) -> None:
    make_deep(tmp_path / "run")
    assert manifest(tmp_path / "run")["."] == [-1, "has more than 256 levels of directories below"]
    assert manifest(tmp_path / "none") == {}
