"""After heal nothing of a killed run is left, whenever it was killed, and nothing else was touched."""

from __future__ import annotations

import errno
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO

import pytest

from chaos.base.file_lock import FileLock
from chaos.base.wait import wait_for
from chaos.heal import tidying
from chaos.heal.heal import heal_all, heal_run
from chaos.heal.undo import UNDO_ACTIONS, UndoAction, UndoContext
from chaos.history.ledger import Ledger, UndoStep
from chaos.history.reader import read_history
from chaos.machine.job.processes import find_run_processes, runs_alive
from chaos.machine.linux.process import identify, send_signal, state
from chaos.store.directory import (
    RunDirectory,
    create_run,
    make_private_directory,
    read_run,
    unfinished_files,
    update_run,
)
from chaos.store.host import this_host
from chaos.store.ownership import LOCK_NAME
from tests.kit.spread import daily

pytestmark = pytest.mark.processes

Start = Callable[..., "subprocess.Popen[bytes]"]

HARNESS = """
import os, signal, sys
from dataclasses import asdict
from pathlib import Path
from chaos.base.clock import SYSTEM_CLOCK
from chaos.history.ledger import Ledger, UndoStep
from chaos.history.writer import HistoryWriter
from chaos.machine.job.protocol import LaunchSpec
from chaos.machine.linux.children import subreaper
from chaos.machine.job.local import LocalPlatform
from chaos.store.directory import create_run, make_private_directory, point_latest, update_run
from chaos.base.wait import wait_for

def trace(text): os.write(1, (text + "\\n").encode())

reports, temporary = Path(sys.argv[1]), Path(sys.argv[2])
trace("imported")
run = create_run(reports, "kill-rank")
trace("created")
point_latest(reports, run.run)
update_run(run.path, seed=1)
trace("described")
history = HistoryWriter(run.path / "history" / "harness.jsonl", writer="harness", run=run.run, clock=SYSTEM_CLOCK)
private = make_private_directory(run.ledger, run.token, parent=temporary)
trace("private")
(private / "agent").mkdir()
(private / "agent" / "sock").write_text("")
run.ledger.record(UndoStep("job", None, "end-job", {"run": run.token}, "end the job"))
trace("recorded")
script = "trap '' TERM; for n in 0 1; do MS_ROLE=MS_WORKER MS_NODE_ID=$n setsid sh -c 'sleep 1000 & wait' & done; wait"
with subreaper():
    environment = {"PATH": os.environ["PATH"]}
    spec = LaunchSpec(run.token, "train", ("sh", "-c", script), environment, run.path, run.path / "log")
    job = LocalPlatform().start(spec)
    trace("started")
    ranks = lambda: {p.rank: p for p in job.processes() if p.rank is not None}
    found = wait_for("ranks", lambda: (r := ranks()) and len(r) == 2 and r, seconds=60)
    trace("found")
    victim = found[1].identity
    run.ledger.record(UndoStep("stop", "stop-1", "resume-process", asdict(victim), "continue rank 1"))
    history.record("fault.injecting", attempt="train", rank=1, pid=victim.pid, fault="stop-1")
    job.signal(victim, signal.SIGSTOP)
    trace("stopped")
    for number in range(50):
        history.record("tick", number=number, text="x" * 500)
    trace("end")
    sys.stdin.read()
"""
STAGES = 9


@pytest.fixture
def temporary(tmp_path: Path) -> Path:
    path = tmp_path / "temporary"
    path.mkdir()
    return path


def go_on_after(microseconds: int, stream: IO[bytes]) -> None:
    """Wait so long, or until the stream has something to read."""
    heard = select.poll()
    heard.register(stream, select.POLLIN)
    until = time.monotonic() + microseconds / 1e6
    while time.monotonic() < until and not heard.poll(0):
        pass


def kill_harness(reports: Path, temporary: Path, *, after: int, microseconds: int) -> None:
    """Run the harness, and kill it some microseconds after a stage of its trace (it may end the wait by going on)."""
    command = [sys.executable, "-c", HARNESS, str(reports), str(temporary)]
    harness = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert harness.stdout is not None
        for _ in range(after):
            assert harness.stdout.readline()
        go_on_after(microseconds, harness.stdout)
    finally:
        harness.kill()
        harness.communicate()


def nothing_is_left(reports: Path, temporary: Path) -> None:
    assert list(temporary.iterdir()) == []
    runs = [path for path in reports.glob("*") if path.is_dir() and not path.is_symlink()] if reports.exists() else []
    for path in runs:
        token = read_run(path)["token"]
        assert find_run_processes(token) == []
        assert token not in runs_alive()
        assert unfinished_files(path) == []
        assert not [problem for problem in read_history(path / "history").problems if problem.kind != "torn-last-line"]
    assert unfinished_files(reports) == [] if reports.exists() else True


@pytest.mark.parametrize("number", daily(range(20), *range(10)))
def test_sigkill_of_the_harness_at_any_moment_is_healed(
    reports: Path, temporary: Path, start: Start, number: int
) -> None:
    bystander = start("sleep", "1000", run="bystander-of-heal")
    chance = random.Random(number)
    # Every stage once a day and twice a night, and then at any moment after it.
    kill_harness(reports, temporary, after=number % (STAGES + 1), microseconds=chance.choice([0, 100, 1_000, 20_000]))
    reports_made = heal_all(reports)
    assert [report.failed for report in reports_made] == [[] for _ in reports_made]
    nothing_is_left(reports, temporary)
    assert heal_all(reports) == [], "a second heal finds nothing"
    assert bystander.poll() is None


def test_heal_says_what_it_found_and_did_and_records_it(reports: Path, temporary: Path) -> None:
    kill_harness(reports, temporary, after=STAGES, microseconds=0)
    (report,) = heal_all(reports)
    assert report.outcome == "healed"
    assert report.ok
    assert report.leftovers[:3] == [
        "open undo step stop: continue rank 1",
        "open undo step job: end the job",
        "open undo step private-directory: remove the run's private directory",
    ]
    assert len(report.leftovers) == 3 + 5
    assert report.done[0].startswith("stop: continued process ")
    assert report.done[1].startswith("job: ended ")
    assert "rank 0" in report.done[1]
    assert report.done[2].startswith("private-directory: removed ")
    run_dir = reports / report.run
    history = read_history(run_dir / "history")
    (began,) = history.select("writer.start", writer="heal")
    assert began.data["run"] == read_run(run_dir)["token"], "by the same name as the run's other writers"
    (healed,) = history.select("fault.healed", writer="heal")
    assert (healed.data["fault"], healed.data["how"]) == ("stop-1", report.done[0].removeprefix("stop: "))
    (end,) = history.select("heal.end")
    assert end.data == {"found": report.leftovers, "done": report.done, "failed": []}
    files = sorted(run_dir.rglob("*"))
    again = heal_run(reports / "latest")
    assert (again.run, again.outcome, again.leftovers, again.done) == (report.run, "nothing", [], [])
    assert sorted(run_dir.rglob("*")) == files


def test_a_heal_that_is_killed_itself_is_completed_by_the_next(reports: Path, temporary: Path) -> None:
    class Killed(BaseException):
        pass

    def dying(acts: int) -> UndoAction:
        """Undo so many steps, then do one more and die before it is closed."""

        def act(step: UndoStep, context: UndoContext) -> str:
            nonlocal acts
            how = UNDO_ACTIONS[step.action](step, context)
            if acts == 0:
                raise Killed
            acts -= 1
            return how

        return act

    kill_harness(reports, temporary, after=STAGES, microseconds=0)
    run_dir = (reports / "latest").resolve()
    # Three steps are open. The third is only reached when the first two have been closed by the heals before.
    for acts, left in ((0, 3), (1, 2), (0, 2), (1, 1), (0, 1)):
        with pytest.raises(Killed):
            heal_run(run_dir, actions=dict.fromkeys(UNDO_ACTIONS, dying(acts)))
        assert len(Ledger(run_dir / "undo.jsonl").open_steps()) == left
    assert heal_run(run_dir).ok
    nothing_is_left(reports, temporary)
    assert heal_all(reports) == []


def test_a_heal_killed_by_sigkill_is_completed_by_the_next(reports: Path, temporary: Path) -> None:
    code = "import sys; from pathlib import Path; from chaos.heal.heal import heal_all; print('go', flush=True); "
    code += "heal_all(Path(sys.argv[1])); print('done', flush=True)"
    for microseconds in (0, 2_000, 5_000, 20_000, 50_000):
        kill_harness(reports, temporary, after=STAGES, microseconds=0)
        healer = subprocess.Popen([sys.executable, "-c", code, str(reports)], stdout=subprocess.PIPE)
        assert healer.stdout is not None
        assert healer.stdout.readline() == b"go\n"
        go_on_after(microseconds, healer.stdout)
        healer.kill()
        healer.communicate()
        assert all(report.ok for report in heal_all(reports))
        nothing_is_left(reports, temporary)


def test_a_live_run_is_reported_and_not_touched(reports: Path, run: RunDirectory, start: Start, tmp_path: Path) -> None:
    child = start("sleep", "1000", run=run.token)
    private = make_private_directory(run.ledger, run.token, parent=tmp_path)
    run.ledger.record(UndoStep("job", None, "end-job", {"run": run.token}))
    for report in (heal_run(run.path), *heal_all(reports)):
        assert (report.outcome, report.ok, report.done) == ("live", False, [])
        assert f"process {os.getpid()}" in report.leftovers[0]
    assert child.poll() is None
    assert private.exists()
    assert not list((run.path / "history").iterdir())


def test_of_a_run_whose_harness_is_stopped_it_is_said_how_to_go_on(reports: Path) -> None:
    code = "import sys; from pathlib import Path; from chaos.store.directory import create_run; "
    code += "run = create_run(Path(sys.argv[1]), 'a'); print(run.run, flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(reports)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as harness:
        assert harness.stdout is not None
        name = harness.stdout.readline().strip()
        identity = identify(harness.pid)
        send_signal(identity, signal.SIGSTOP)
        wait_for("stopped", lambda: state(identity) == "stopped", seconds=60)
        report = heal_run(reports / name)
        assert report.live and f"`kill -CONT {harness.pid}` lets it go on" in report.leftovers[0]
        harness.kill()


def test_what_a_damaged_ledger_does_not_tell_is_found_by_itself(
    dead: RunDirectory, start: Start, reports: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    private = make_private_directory(dead.ledger, dead.token)
    start("sleep", "1000", run=dead.token)
    (dead.path / "undo.jsonl").unlink()
    (report,) = heal_all(reports)
    assert report.outcome == "healed"
    assert f"private directory {private}" in report.leftovers and f"removed {private}" in report.done
    assert not private.exists() and find_run_processes(dead.token) == []


def test_processes_are_ended_even_if_no_step_is_open(dead: RunDirectory, reports: Path, start: Start) -> None:
    start("sleep", "1000", run=dead.token)
    wait_for("it", lambda: find_run_processes(dead.token), seconds=60)
    (report,) = heal_all(reports)
    assert report.outcome == "healed"
    assert report.done[0].startswith("ended process ")
    assert find_run_processes(dead.token) == []


def test_what_cannot_be_put_back_is_reported_and_tried_again(dead: RunDirectory, reports: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "precious").write_text("keep")
    dead.ledger.record(UndoStep("d", None, "remove-directory", {"path": str(foreign)}, "remove it"))
    dead.ledger.record(UndoStep("x", "net-1", "restore-network", {}, "delete the rule"))
    for _ in range(2):
        (report,) = heal_all(reports)
        assert (report.outcome, report.ok) == ("failed", False)
        assert report.failed == [
            "x: there is no undo action 'restore-network' here: install the package, or the version of chaos, that "
            "brings it, and heal again; delete the rule",
            f"d: {foreign} does not carry this run's marker .chaos-run; it was left alone",
        ]
    assert (foreign / "precious").exists()
    assert heal_run(dead.path, actions={**UNDO_ACTIONS, "restore-network": lambda *_: "deleted"}).done == ["x: deleted"]
    assert read_history(dead.path / "history").select("fault.healed", fault="net-1")


def test_a_damaged_ledger_is_reported_and_the_rest_is_healed(dead: RunDirectory, tmp_path: Path) -> None:
    private = make_private_directory(dead.ledger, dead.token, parent=tmp_path)
    dead.ledger.record(UndoStep("job", None, "end-job", {"run": dead.token}))
    ledger = dead.path / "undo.jsonl"
    ledger.write_bytes(b"garbage\n" + ledger.read_bytes())
    report = heal_run(dead.path)
    assert "the undo ledger is damaged" in report.failed[0]
    assert report.outcome == "refused", "the line behind the damage has no proof any more that it belongs there"
    assert report.refused == ["undo.jsonl:2: has no proof of this user's key in its place"]
    assert [text.partition(":")[0] for text in report.proposed] == ["private-directory"]
    assert private.exists() and report.done == ["job: no process of the run was left"]


def test_only_the_process_that_the_ledger_means_is_signalled(dead: RunDirectory, start: Start) -> None:
    stranger = start("sleep", "1000")
    identity = identify(stranger.pid)
    send_signal(identity, signal.SIGSTOP)
    wait_for("stopped", lambda: state(identity) == "stopped", seconds=60)
    earlier = {**asdict(identity), "start_time": identity.start_time - 1}
    dead.ledger.record(UndoStep("reused", "s", "resume-process", earlier))
    dead.ledger.record(UndoStep("forged", "s", "resume-process", asdict(identity)))
    dead.ledger.record(UndoStep("other", None, "end-job", {"run": "another-run"}))
    report = heal_run(dead.path)
    assert [text.partition(":")[0] for text in report.failed] == ["other", "forged"]
    assert [text.partition(":")[0] for text in report.done] == ["reused"]
    assert state(identity) == "stopped"


def test_a_run_whose_directory_is_closed_is_not_passed_over(
    dead: RunDirectory, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modes do not bind root, so what they do to others is done here."""
    really = Path.lstat

    def refused(path: Path) -> os.stat_result:
        if path.parent.name == dead.run:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return really(path)

    (dead.path / ".run.json.0000abcd.new").touch()
    monkeypatch.setattr(Path, "lstat", refused)
    (report,) = heal_all(reports)
    assert report.run == dead.run


def test_a_run_that_cannot_be_looked_at_keeps_no_other_from_being_healed(
    dead: RunDirectory, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = create_run(reports, "a"), create_run(reports, "b")
    for run in (first, second, dead):
        run.ledger.record(UndoStep("job", None, "end-job", {"run": run.token}))
        run.lock.release()
    odd = {first.path: OSError(errno.EIO, "Input/output error"), second.path: RuntimeError("what nobody thought of")}

    def looked(run_dir: Path) -> bool:
        if run_dir in odd:
            raise odd[run_dir]
        return False

    monkeypatch.setattr("chaos.heal.heal.is_live", looked)
    reported = {report.run: report for report in heal_all(reports)}
    assert {name: report.outcome for name, report in reported.items()} == {
        first.run: "failed",
        second.run: "failed",
        dead.run: "healed",
    }
    assert "Input/output error" in reported[first.run].failed[0]
    assert "RuntimeError: what nobody thought of" in reported[second.run].failed[0]


def test_runs_that_vanish_or_are_another_users_are_passed_over(
    dead: RunDirectory, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, foreign = create_run(reports, "a"), create_run(reports, "b")
    for run in (gone, foreign):
        run.lock.release()

    def looked(run_dir: Path) -> bool:
        if run_dir == gone.path:
            shutil.rmtree(run_dir)
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(run_dir))
        if run_dir == foreign.path:
            raise PermissionError(errno.EACCES, "Permission denied", str(run_dir))
        return False

    monkeypatch.setattr("chaos.heal.heal.is_live", looked)
    monkeypatch.setattr("os.geteuid", lambda: dead.path.lstat().st_uid + 1)
    assert heal_all(reports) == []


def test_what_a_killed_creation_left_is_removed_and_nothing_else(reports: Path) -> None:
    stem = "kill-rank-20260101-000000-00a"
    for number, names in enumerate([(), (LOCK_NAME,), (LOCK_NAME, ".run.json.00000000.new"), (LOCK_NAME, "notes")]):
        (reports / f"{stem}{number}").mkdir(parents=True)
        for name in names:
            (reports / f"{stem}{number}" / name).write_text("")
    (reports / "mine").mkdir()
    (reports / ".latest.00000000.new").symlink_to("nowhere")
    assert heal_all(reports) == []
    left = {path.name for path in reports.iterdir()}
    assert left == {f"{stem}3", "mine", ".lock"}


def test_unfinished_files_in_a_dead_run_are_removed(dead: RunDirectory, reports: Path) -> None:
    (dead.path / ".run.json.0000abcd.new").write_text("{")
    (report,) = heal_all(reports)
    assert report.done == ["removed unfinished file .run.json.0000abcd.new"]
    assert unfinished_files(dead.path) == []


def test_a_run_without_an_identity_but_with_open_steps_cannot_be_healed(dead: RunDirectory, reports: Path) -> None:
    (dead.path / "run.json").write_text("{")
    assert heal_all(reports) == []
    dead.ledger.record(UndoStep("job", None, "end-job", {"run": dead.token}, "end the job"))
    (report,) = heal_all(reports)
    assert report.leftovers == ["open undo step job: end the job"]
    assert "cannot be undone without the run's identity" in report.failed[0]


def test_nothing_to_heal(reports: Path, dead: RunDirectory, tmp_path: Path) -> None:
    assert heal_all(tmp_path / "missing") == []
    assert heal_all(reports) == []
    assert heal_run(dead.path).outcome == "nothing"
    assert list((dead.path / "history").iterdir()) == [], "a heal with nothing to do writes nothing"
    assert heal_run(reports / "missing").failed == [f"{reports / 'missing'}: there is no such run"]


def test_a_heal_that_cannot_record_says_so(dead: RunDirectory, tmp_path: Path) -> None:
    dead.ledger.record(UndoStep("job", None, "end-job", {"run": dead.token}))
    (dead.path / "history").rmdir()
    (dead.path / "history").write_text("in the way")
    report = heal_run(dead.path)
    assert report.outcome == "failed"
    assert report.failed[0].startswith("what was done is not on record, heal again when")
    assert report.done == ["job: no process of the run was left"], "it is put back all the same"


def test_a_directory_that_cannot_be_locked_is_reported(dead: RunDirectory) -> None:
    (dead.path / LOCK_NAME).unlink()
    (dead.path / LOCK_NAME).mkdir()
    assert "cannot be locked" in heal_run(dead.path).failed[0]


def test_creation_and_heal_do_not_run_into_each_other(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    tidy = tidying._remove_stillborn

    def looking(directory: Path) -> None:
        seen.append(FileLock.try_acquire(reports / ".lock") is None)
        tidy(directory)

    monkeypatch.setattr(tidying, "_remove_stillborn", looking)
    (reports / "kill-rank-20260101-000000-00a0").mkdir(parents=True)
    assert heal_all(reports) == []
    assert seen == [True], "nobody can make a directory while those that look unfinished are removed"
    assert json.loads((create_run(reports, "a").path / "run.json").read_text())["run"].startswith("a-")


def described_elsewhere(reports: Path, **host: str) -> RunDirectory:
    """A run with an open step, whose harness has ended, made on a host that is described so."""
    run = create_run(reports, "kill-rank")
    run.ledger.record(UndoStep("job", None, "end-job", {"run": run.token}, "end the job"))
    update_run(run.path, host={**this_host(), **host})
    run.lock.release()
    return run


def test_a_run_of_another_host_is_left_to_it(reports: Path) -> None:
    run = described_elsewhere(reports, name="node-7", boot="another")
    report = heal_run(run.path)
    assert report.outcome == "refused"
    assert report.refused == ["the run was made on node-7: heal it there, or delete its directory if that host is gone"]
    assert report.proposed == [f'job: end the job (end-job {{"run": "{run.token}"}})']
    assert [step.id for step in run.ledger.read().open] == ["job"]


@pytest.mark.parametrize("host", [{"name": "a-container"}, {"boot": "before the reboot"}])
def test_a_run_of_a_container_or_of_the_boot_before_is_healed(reports: Path, host: dict[str, str]) -> None:
    run = described_elsewhere(reports, **host)
    assert heal_run(run.path).ok
    assert run.ledger.read().open == []
