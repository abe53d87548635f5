"""Runs that were recorded where hosts are: kept whole, good when they are taken, and refused as bases otherwise."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chaos.selftest import recorded as module
from chaos.selftest.base import BaseRuns, BaseUnusable, cache_directory, manifest
from chaos.selftest.launcher import Launcher, Ran
from chaos.selftest.recorded import NotRecorded, pack, record, unpack
from tests.kit.runs.good_run import GoodRun, good_run
from tests.unit.conftest import MakeDeep


class NeverAsked(Launcher):
    """Fails where a run is made."""

    def run(self, scenario: Path, *arguments: object, **options: object) -> Ran:
        raise AssertionError(f"{scenario} was run")


def spoilt() -> GoodRun:
    run = good_run()
    run.only("rank.exit", attempt="resume", rank=3)["code"] = 1
    return run


def take(place: Path, run: GoodRun, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Take the base ``recorded``, of which that run was recorded."""
    monkeypatch.setattr(module, "RECORDED", place / "recorded")
    pack(run.write(place / "made"), module.archive_of("recorded"), {})
    cache = cache_directory({"XDG_CACHE_HOME": str(place / "cache")})
    bases = BaseRuns(cache, place, NeverAsked(), {})
    return bases.take("recorded", place / "taken", cores=1, note=lambda text: None)


def test_what_is_kept_is_the_run_file_for_file_and_always_the_same(tmp_path: Path) -> None:
    run = good_run().write(tmp_path / "run")
    (run / "job" / "empty").mkdir(parents=True)
    for name in ("one", "two"):
        pack(run, tmp_path / f"{name}.zip", {})
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    unpack(tmp_path / "one.zip", tmp_path / "again")
    assert manifest(tmp_path / "again") == manifest(run) != {}
    assert (tmp_path / "again" / "job" / "empty").is_dir(), "a search of an empty directory has seen that it is empty"


def test_a_recorded_run_is_taken_as_it_is_and_none_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = take(tmp_path, good_run(), monkeypatch)
    assert manifest(taken) == manifest(tmp_path / "made")


def test_a_recorded_run_that_is_not_green_any_more_is_no_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BaseUnusable, match=r"base recorded is fail, not good: hygiene: .*; record it anew"):
        take(tmp_path, spoilt(), monkeypatch)


def test_only_a_green_run_of_its_own_scenario_can_be_recorded(tmp_path: Path) -> None:
    archive = tmp_path / "kept" / "base.zip"
    good, bad = good_run().write(tmp_path / "good"), spoilt().write(tmp_path / "bad")
    name = good_run().plan.identity.scenario
    with pytest.raises(NotRecorded, match=f"is a run of {name}, not of another"):
        record("another", good, archive)
    with pytest.raises(NotRecorded, match="is fail, and no base"):
        record(name, bad, archive)
    assert not archive.exists()
    record(name, good, archive)
    assert archive.stat().st_size > 1000
    unpack(archive, tmp_path / "unpacked")
    named = [
        path
        for path in (tmp_path / "unpacked").rglob("*")
        if path.is_file() and str(tmp_path).encode() in path.read_bytes()
    ]
    assert named == [], "no directory of the machine on which it was recorded is in it"
    kept = archive.read_bytes()
    (good / "large").write_bytes(os.urandom(5 << 20))
    with pytest.raises(NotRecorded, match=r"takes [\d,]+ bytes, more than 4,194,304: use a smaller job"):
        record(name, good, archive)
    assert list(archive.parent.iterdir()) == [archive] and archive.read_bytes() == kept


def test_a_run_that_cannot_be_looked_at_as_a_whole_is_not_recorded(tmp_path: Path, make_deep: MakeDeep) -> None:
    run = good_run().write(tmp_path / "run")
    make_deep(run / "job" / "deep")
    with pytest.raises(NotRecorded, match="has more than 256 levels of directories below"):
        record(good_run().plan.identity.scenario, run, tmp_path / "kept" / "base.zip")
    assert list((tmp_path / "kept").iterdir()) == []
