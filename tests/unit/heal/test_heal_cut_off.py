"""What a harness leaves that was killed within one act is found, told and removed, and nothing that only looks like it.

The names are not repeated here: a process is killed in that very moment, by the code that makes them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from chaos.base.file_lock import FileLock
from chaos.cli.commands.heal import _print
from chaos.faults.nodes.on_node import RESTORE as RESTORE_NODE
from chaos.faults.storage.disk_full import SOURCE
from chaos.faults.storage.storage import PROBE, unmount_step
from chaos.heal import heal
from chaos.heal.heal import heal_all, heal_run
from chaos.heal.heal_report import HealReport
from chaos.heal.interrupted_acts import find_cut_off
from chaos.history.ledger import UndoStep
from chaos.machine.linux.mounts import REMOVED, may_mount, mount_memory, mount_read_only, mounts_in, unmount
from chaos.observe.checkpoints.layout import UNFINISHED_DIGESTS
from chaos.soak.leftovers import leftovers
from chaos.store.baselines import DIRECTORY
from chaos.store.directory import RunDirectory

pytestmark = pytest.mark.processes

NOBODY = 2**22 + 1
"""A PID that Linux never gives."""
KEY = "0a" * 32
KILLED = """
import os, signal, sys
from pathlib import Path
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
place = Path(sys.argv[1])
"""
ACTS = {
    "a baseline is kept": f"""
from chaos.store import baselines as cache
from chaos.base.wait import Patience
cache.why_incomplete = lambda _: None
Path.replace = die
cache.find_or_make(place, "{KEY}", lambda: place / "baseline", wait=Patience(20))
""",
    "a directory is taken away": """
from chaos.machine.linux import mounts
mounts._mount = die
mounts.mount_removed(place)
""",
    "a file is tried out": """
from chaos.faults.storage.storage import name_refused
Path.unlink = die
name_refused(place, os.getpid())
""",
    "digests are kept": """
from chaos.observe.checkpoints.saved_state import keep_digests
Path.replace = die
keep_digests([place])
""",
}
needs_mounts = pytest.mark.skipif(not may_mount(), reason="mounting needs CAP_SYS_ADMIN, which this process has not")


def killed_while(act: str, place: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED + ACTS[act], str(place)], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.fixture
def storage(dead: RunDirectory) -> Path:
    """The directory that the job of a dead run saves in, at which a fault of storage was made."""
    path = dead.path / "job" / "check points"
    path.mkdir(parents=True)
    dead.ledger.record(unmount_step("gone", path, "unmount it"))
    dead.ledger.close("gone-storage", "unmounted")
    return path


def test_a_pointer_that_was_being_written_is_told_and_removed(reports: Path) -> None:
    reports.mkdir()
    killed_while("a baseline is kept", reports)
    (left,) = [path for path in (reports / DIRECTORY).iterdir() if path.suffix != ".lock"]
    assert leftovers(reports, NOBODY) == [f"left by an act that was cut off: {left.resolve()}"]
    (report,) = heal_all(reports)
    assert (report.run, report.outcome, report.leftovers) == (DIRECTORY, "healed", [f"unfinished file {left.name}"])
    assert report.done == [f"removed unfinished file {left.name}"]
    assert not left.exists() and leftovers(reports, NOBODY) == [] and heal_all(reports) == []


def test_a_pointer_that_a_living_harness_writes_is_left_to_it(reports: Path) -> None:
    reports.mkdir()
    killed_while("a baseline is kept", reports)
    lock = FileLock.try_acquire(reports / DIRECTORY / f"{KEY}.lock")
    assert lock is not None
    with lock:
        assert heal_all(reports) == []
        assert (reports / DIRECTORY / f"{KEY}.new").exists()
    assert [report.outcome for report in heal_all(reports)] == ["healed"]


@pytest.mark.parametrize("name", ["notes.new", f"{KEY}.newer", f"{KEY}.txt", f"{KEY.upper()}.new"])
def test_other_files_beside_the_pointers_are_nobodys_business(reports: Path, name: str) -> None:
    (reports / DIRECTORY).mkdir(parents=True)
    (reports / DIRECTORY / name).write_text("mine")
    assert heal_all(reports) == []
    assert (reports / DIRECTORY / name).read_text() == "mine"


def test_no_link_leads_to_a_pointer(reports: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"{KEY}.new").write_text("precious")
    (reports / DIRECTORY).mkdir(parents=True)
    (reports / DIRECTORY / f"{KEY}.new").symlink_to(elsewhere / f"{KEY}.new")
    assert heal_all(reports) == []
    assert (reports / DIRECTORY / f"{KEY}.new").is_symlink()
    (reports / DIRECTORY / f"{KEY}.new").unlink()
    (reports / DIRECTORY / f"{KEY}.lock").unlink(missing_ok=True)
    (reports / DIRECTORY).rmdir()
    (reports / DIRECTORY).symlink_to(elsewhere)
    assert heal_all(reports) == []
    assert [path.name for path in elsewhere.iterdir()] == [f"{KEY}.new"]


@needs_mounts
def test_a_pointer_that_cannot_be_removed_is_told_with_the_way_on(
    reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports.mkdir()
    killed_while("a baseline is kept", reports)
    mount_read_only(reports / DIRECTORY)
    try:
        (report,) = heal_all(reports)
    finally:
        unmount(reports / DIRECTORY)
    assert report.failed == [f"unfinished file {KEY}.new cannot be removed: Read-only file system"]
    _print(report)
    assert f"then: chaos heal --reports {reports}\n" in capsys.readouterr().out
    _print(HealReport("a-run", reports / "a-run", failed=["why"]))
    assert f"then: chaos heal {reports / 'a-run'}\n" in capsys.readouterr().out


@pytest.mark.parametrize("act", ["a directory is taken away", "a file is tried out"])
@pytest.mark.parametrize("of", ["the storage", "a node"])
def test_what_an_act_on_the_storage_was_killed_in_is_told_and_removed(
    dead: RunDirectory, reports: Path, storage: Path, act: str, of: str
) -> None:
    if of == "a node":
        (dead.path / "undo.jsonl").unlink()
        dead.ledger.record(UndoStep("volume", "v", RESTORE_NODE, {"node": 1, "what": "directories"}))
        dead.ledger.close("volume", "done")
    before = set(storage.parent.rglob("*"))
    killed_while(act, storage)
    (left,) = set(storage.parent.rglob("*")) - before
    message = f"left by an act that was cut off: {left.resolve()}"
    assert message in leftovers(reports, NOBODY)
    (report,) = heal_all(reports)
    assert (report.run, report.outcome, report.leftovers) == (dead.run, "healed", [message])
    assert report.done == [f"removed {left.resolve()}"]
    assert set(storage.parent.rglob("*")) == before
    assert heal_all(reports) == [] and heal_run(dead.path).outcome == "nothing"
    assert message not in leftovers(reports, NOBODY)


@pytest.fixture
def checkpoint(dead: RunDirectory) -> Path:
    """A large checkpoint in the job of a dead run, in which no storage was disturbed."""
    path = dead.path / "job" / "checkpoints" / "rank_0" / "plain-1_4.ckpt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"large")
    return path


def test_digests_that_were_being_written_are_told_and_removed(
    dead: RunDirectory, reports: Path, checkpoint: Path
) -> None:
    killed_while("digests are kept", checkpoint)
    (left,) = set(checkpoint.parent.iterdir()) - {checkpoint}
    message = f"left by an act that was cut off: {left.resolve()}"
    assert message in leftovers(reports, NOBODY)
    (report,) = heal_all(reports)
    assert (report.run, report.outcome, report.leftovers) == (dead.run, "healed", [message])
    assert report.done == [f"removed {left.resolve()}"]
    assert list(checkpoint.parent.iterdir()) == [checkpoint] and checkpoint.read_bytes() == b"large"
    assert heal_all(reports) == [] and message not in leftovers(reports, NOBODY)


def test_files_that_are_only_called_like_unfinished_digests_are_left(dead: RunDirectory, checkpoint: Path) -> None:
    alone, link = (checkpoint.parent / f"{name}{UNFINISHED_DIGESTS}" for name in ("mine", checkpoint.name))
    alone.write_text("precious")
    link.symlink_to(alone.name)
    assert heal_run(dead.path).outcome == "nothing"
    assert alone.read_text() == "precious" and link.is_symlink()


def test_a_pipe_in_the_place_of_the_jobs_directory_holds_nobody(dead: RunDirectory) -> None:
    os.mkfifo(dead.path / "job")
    with ThreadPoolExecutor() as pool:
        searching = pool.submit(find_cut_off, dead.path, ())
        try:
            assert searching.result(60) == []
        finally:
            with suppress(OSError):
                os.close(os.open(dead.path / "job", os.O_WRONLY | os.O_NONBLOCK))  # lets whoever waits for it go on


def test_what_a_living_harness_makes_is_left_to_it(run: RunDirectory, reports: Path) -> None:
    storage = run.path / "job" / "checkpoints"
    storage.mkdir(parents=True)
    run.ledger.record(unmount_step("gone", storage, "unmount it"))
    killed_while("a directory is taken away", storage)
    killed_while("a file is tried out", storage)
    made = set(storage.parent.rglob("*"))
    assert len(made) == 3
    assert {report.outcome for report in (heal_run(run.path), *heal_all(reports))} == {"live"}
    assert set(storage.parent.rglob("*")) == made


def full_directory(storage: Path) -> None:
    path = storage.with_name(REMOVED.format(storage.name))
    path.mkdir()
    (path / "precious").write_text("keep")


def directory_of_another(storage: Path) -> None:
    storage.with_name(REMOVED.format("other")).mkdir()


def linked_directory(storage: Path) -> None:
    (storage.parent / "empty").mkdir()
    storage.with_name(REMOVED.format(storage.name)).symlink_to("empty")


def written_file(storage: Path) -> None:
    (storage / PROBE).write_text("precious")


def linked_file(storage: Path) -> None:
    (storage / "empty").write_text("")
    (storage / PROBE).symlink_to("empty")


def behind_a_link(storage: Path) -> None:
    elsewhere = storage.parents[2] / "elsewhere"
    (elsewhere / "checkpoints").mkdir(parents=True)
    (elsewhere / "checkpoints" / PROBE).write_text("")
    (elsewhere / REMOVED.format("checkpoints")).mkdir()
    (storage / "link").symlink_to(elsewhere)


def whole_job_behind_a_link(storage: Path) -> None:
    behind_a_link(storage)
    job = storage.parent
    job.rename(job.with_name("moved"))
    job.symlink_to(storage.parents[2] / "elsewhere")


@pytest.mark.parametrize(
    "make",
    [
        *(full_directory, directory_of_another, linked_directory, written_file, linked_file, behind_a_link),
        whole_job_behind_a_link,
    ],
)
def test_what_only_looks_like_it_stays(
    dead: RunDirectory, reports: Path, storage: Path, make: Callable[[Path], None]
) -> None:
    make(storage)
    before = set(reports.rglob("*"))
    assert heal_all(reports) == []
    assert heal_run(dead.path).leftovers == []
    assert set(reports.rglob("*")) - before <= {reports / ".lock"}
    assert before - set(reports.rglob("*")) == set()


def test_a_run_without_a_fault_of_storage_has_none(dead: RunDirectory, reports: Path) -> None:
    storage = dead.path / "job" / "checkpoints"
    storage.mkdir(parents=True)
    killed_while("a directory is taken away", storage)
    assert heal_all(reports) == [] and storage.with_name(REMOVED.format("checkpoints")).exists()


@needs_mounts
def test_one_that_lies_on_a_mount_of_the_fault_is_removed_with_it(
    dead: RunDirectory, reports: Path, storage: Path
) -> None:
    dead.ledger.record(unmount_step("full", storage.resolve(), "unmount it"))
    mount_memory(storage, SOURCE, 1 << 16)
    (storage / "saved").write_text("kept")
    killed_while("a file is tried out", storage)
    (report,) = heal_all(reports)
    assert report.outcome == "healed" and report.done[-1] == f"removed {(storage / PROBE).resolve()}", report
    assert [path.name for path in storage.iterdir()] == ["saved"] and mounts_in(dead.path.resolve()) == []


@needs_mounts
def test_as_long_as_something_is_mounted_it_is_left_for_the_next_heal(
    dead: RunDirectory, reports: Path, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that a fault has frozen would hold heal itself for good."""

    def refuse(path: Path) -> str:
        raise OSError(f"{path} is busy")

    killed_while("a file is tried out", storage)
    over = dead.path.resolve() / "job" / "over"
    over.mkdir()
    mount_memory(over, "a-disk", 1 << 16)
    with monkeypatch.context() as patched:
        patched.setattr(heal, "unmount_topmost", refuse)
        (report,) = heal_all(reports)
    assert report.failed == [f"{over} is busy"] and (storage / PROBE).exists()
    (again,) = heal_all(reports)
    assert again.outcome == "healed" and not (storage / PROBE).exists()
