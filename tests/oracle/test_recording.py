"""What is recorded is the run, and nothing of the machine that made it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from chaos.selftest.base import manifest
from chaos.selftest.recorded import NotRecorded
from tests.oracle import record as recording
from tests.oracle import recorded_runs
from tests.oracle.archive import read_archive, write_archive
from tests.oracle.recorded_runs import archive_of

pytestmark = pytest.mark.processes

_RUN = "plain-uce-phase-forward"
_ARCHIVE = archive_of(_RUN)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A recorded run, as the directory that somebody wants to record."""
    read_archive(_ARCHIVE, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(autouse=True)
def oracle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An oracle that is empty."""
    for name in ("RUNS", "RESULTS"):
        monkeypatch.setattr(recorded_runs, name, tmp_path / "oracle" / name.lower())
    return tmp_path / "oracle"


def test_an_archive_holds_the_whole_run_and_is_always_the_same(run_dir: Path, tmp_path: Path) -> None:
    assert not any((run_dir / "job").iterdir()), "an empty directory is kept, too: somebody searched it"
    (run_dir / "names").write_text("this-machine and that")
    for name in ("one", "two"):
        write_archive(run_dir, tmp_path / name, {"this-machine": "a machine"})
        (run_dir / "plan.json").touch()
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    read_archive(tmp_path / "one", tmp_path / "again")
    assert (tmp_path / "again" / "names").read_text() == "a machine and that"
    (run_dir / "names").write_text("a machine and that")
    assert manifest(tmp_path / "again") == manifest(run_dir)
    assert (tmp_path / "again" / "job").is_dir()


def test_a_run_is_recorded_with_the_result_of_today(run_dir: Path, oracle: Path) -> None:
    recorded = (Path(__file__).parent / "results" / f"{_RUN}.json").read_bytes()
    assert recording.record(run_dir) == _RUN
    assert (oracle / "results" / f"{_RUN}.json").read_bytes() == recorded
    assert [path.name for path in (oracle / "runs").iterdir()] == [f"{_RUN}.tar.xz"]


def test_a_run_that_names_this_machine_is_not_recorded(run_dir: Path, oracle: Path) -> None:
    (run_dir / "logs" / "train" / "worker_0.log").write_text(f"rank 0 is on {os.uname().nodename} here\n")
    with pytest.raises(NotRecorded, match=r"logs/train/worker_0\.log names this machine"):
        recording.record(run_dir)
    assert not oracle.exists()


def test_a_run_that_is_judged_otherwise_in_its_archive_is_not_recorded(
    run_dir: Path, oracle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_empty_directories(run_dir: Path, archive: Path, renamed: Mapping[str, str]) -> None:
        copy = shutil.copytree(run_dir, run_dir.parent / "copy")
        (copy / "job").rmdir()
        write_archive(copy, archive, renamed)

    monkeypatch.setattr(recording, "write_archive", without_empty_directories)
    with pytest.raises(NotRecorded, match="otherwise when it is taken from its archive: checkpoint is unknown"):
        recording.record(run_dir)
    assert not oracle.exists()
