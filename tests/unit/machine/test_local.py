"""A local job: every process is its own, every exit status the true one, and stop leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.machine.job.local import LocalJob, LocalPlatform
from chaos.machine.job.processes import FoundProcess, find_run_processes
from chaos.machine.job.protocol import LaunchSpec, PlatformError
from chaos.machine.linux.children import ExitStatus, collect, subreaper
from chaos.machine.linux.process import ProcessIdentity, identify, state

Start = Callable[..., "subprocess.Popen[bytes]"]
Found = Callable[[int], list[FoundProcess]]
Spec = Callable[..., LaunchSpec]

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("adopting")]


def exit_of(job: LocalJob, identity: ProcessIdentity) -> ExitStatus:
    return wait_for("an exit status", lambda: job.exit_status(identity), seconds=60)


def seen(job: LocalJob, count: int) -> list[FoundProcess]:
    def enough() -> list[FoundProcess] | None:
        processes = job.processes()
        return processes if len(processes) == count else None

    return wait_for(f"{count} processes", enough, seconds=60)


def zombies_of(job: LocalJob) -> list[int]:
    """Children of this process that have ended and nobody has reaped, of those that are as young as the job."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] == "Z" and int(fields[1]) == os.getpid() and int(fields[19]) >= job.launcher.start_time:
            found.append(int(path.parent.name))
    return found


def test_a_job_starts_with_its_identity_in_a_session_of_its_own_and_logs_to_its_file(spec: Spec, token: str) -> None:
    launch = spec("echo out; echo err >&2; cat; env; exec sleep 1000")
    launch.log.write_text("kept\n")
    job = LocalPlatform().start(launch)
    wait_for("output", lambda: "CHAOS_ATTEMPT" in launch.log.read_text(), seconds=60)
    lines = launch.log.read_text().splitlines()
    assert lines[:3] == ["kept", "out", "err"]
    assert {f"CHAOS_RUN={token}", "CHAOS_ATTEMPT=train", "PATH=/usr/bin:/bin"} <= set(lines)
    (process,) = job.processes()
    assert (process.identity, process.session, process.attempt) == (job.launcher, job.launcher.pid, "train")
    assert job.stop(5).complete


def test_a_launcher_that_cannot_be_started_is_an_error(spec: Spec, tmp_path: Path) -> None:
    launch = spec("true")
    for broken in (
        LaunchSpec(**{**vars(launch), "argv": ("no-such-program",)}),
        LaunchSpec(**{**vars(launch), "argv": ()}),
        LaunchSpec(**{**vars(launch), "cwd": tmp_path / "missing"}),
        LaunchSpec(**{**vars(launch), "cores": (100_000,)}),
    ):
        with pytest.raises(PlatformError, match="cannot be started"):
            LocalPlatform().start(broken)
    assert find_run_processes(launch.run) == []


def test_ranks_whose_launcher_ends_at_once_tell_their_true_exit_status(spec: Spec) -> None:
    script = "for n in 0 1 2; do MS_ROLE=MS_WORKER MS_NODE_ID=$n setsid sh -c 'sleep 1000; exit 7' & done; exit 3"
    job = LocalPlatform().start(spec(script))
    assert exit_of(job, job.launcher) == ExitStatus(code=3)
    ranks = {process.rank: process.identity for process in seen(job, 6) if process.rank is not None}
    sleeps = {process.ppid: process.identity for process in job.processes() if process.role == "other"}
    assert sorted(ranks) == [0, 1, 2]
    assert [job.exit_status(identity) for identity in ranks.values()] == [None] * 3
    job.signal(ranks[0], signal.SIGKILL)
    job.signal(ranks[1], signal.SIGSEGV)
    job.signal(sleeps[ranks[2].pid], signal.SIGTERM)
    assert exit_of(job, ranks[0]) == ExitStatus(signal=signal.SIGKILL)
    assert exit_of(job, ranks[1]) == ExitStatus(signal=signal.SIGSEGV)
    assert exit_of(job, ranks[2]) == ExitStatus(code=7)
    assert state(ranks[0]) == "gone", "it was reaped"
    assert job.exit_status(ranks[0]) == ExitStatus(signal=signal.SIGKILL), "and the answer stays"
    assert job.stop(5).complete
    assert zombies_of(job) == []


def test_the_status_of_a_zombie_that_its_own_parent_has_not_reaped_is_known(spec: Spec) -> None:
    job = LocalPlatform().start(spec("sh -c 'sleep 1000; exit 9' & exec sleep 1000"))
    parent = job.launcher.pid
    processes = seen(job, 3)
    (child,) = [process for process in processes if process.ppid == parent]
    (grandchild,) = [process for process in processes if process.ppid == child.pid]
    job.signal(grandchild.identity, signal.SIGTERM)
    assert exit_of(job, child.identity) == ExitStatus(code=9)
    assert state(child.identity) == "zombie"
    assert job.stop(5).complete
    assert state(child.identity) == "gone"


def test_a_process_that_its_parent_has_reaped_has_an_unknown_status(spec: Spec) -> None:
    job = LocalPlatform().start(spec("sleep 1000 & wait; echo reaped; exec sleep 1001"))
    (child,) = [process for process in seen(job, 2) if process.identity != job.launcher]
    job.signal(child.identity, signal.SIGKILL)
    wait_for("the parent to reap", lambda: state(child.identity) == "gone", seconds=60)
    status = exit_of(job, child.identity)
    assert status == ExitStatus()
    assert not status.known
    job.stop(5)


def test_the_status_of_a_process_object_is_not_stolen(spec: Spec, start: Start, token: str) -> None:
    mine = start("sh", "-c", "exit 5", run=token)
    job = LocalPlatform().start(spec("sh -c 'exit 1' & exec sleep 1000"))
    wait_for("its end", lambda: state(identify(mine.pid)) == "zombie", seconds=60)
    job.processes()
    job.stop(5)
    assert mine.wait() == 5
    with pytest.raises(PlatformError, match="is not of the job"):
        job.exit_status(ProcessIdentity(mine.pid, 1, "b"))


def test_a_stranger_is_not_signalled_through_a_job(spec: Spec, start: Start) -> None:
    stranger = start("sleep", "1000")
    job = LocalPlatform().start(spec("exec sleep 1000"))
    with pytest.raises(PlatformError, match="is not of the job"):
        job.signal(identify(stranger.pid), signal.SIGKILL)
    job.stop(5)
    assert stranger.poll() is None


STUBBORN = (
    "trap '' TERM; (env -i sh -c \"trap '' TERM; setsid sleep 1000; sleep 1001\") & sleep 1002 & wait; sleep 1003"
)


def test_stop_ends_what_ignores_sigterm_what_is_stopped_and_what_hides(spec: Spec, start: Start, token: str) -> None:
    stranger = start("sleep", "1000", run=token + "-other")
    job = LocalPlatform().start(spec(STUBBORN))
    processes = seen(job, 4)
    for process in processes:
        job.signal(process.identity, signal.SIGSTOP)
    result = job.stop(0.2)
    assert result.complete
    assert {process.identity for process in result.ended} >= {process.identity for process in processes}
    assert {state(process.identity) for process in processes} == {"gone"}
    assert find_run_processes(token) == []
    assert zombies_of(job) == []
    assert stranger.poll() is None


def test_stop_lets_a_job_end_itself_within_its_grace(spec: Spec, tmp_path: Path) -> None:
    job = LocalPlatform().start(spec("trap 'echo bye; kill $!; exit 4' TERM; sleep 1000 & echo ready; wait"))
    wait_for("ready", lambda: "ready" in (tmp_path / "train.log").read_text(), seconds=60)
    assert job.stop(60).complete
    assert "bye" in (tmp_path / "train.log").read_text()
    assert job.exit_status(job.launcher) == ExitStatus(code=4)


def test_stop_catches_children_that_appear_while_it_stops(spec: Spec, token: str) -> None:
    job = LocalPlatform().start(spec("trap 'sleep 1001 & sleep 1002 & exit' TERM; sleep 1000 & while :; do wait; done"))
    seen(job, 2)
    assert job.stop(10).complete
    assert find_run_processes(token) == []


def test_stop_of_a_job_that_has_ended_does_nothing_and_reaps(spec: Spec) -> None:
    job = LocalPlatform().start(spec("(true) & (true) & sh -c 'true & exec true' & exit 2"))
    assert exit_of(job, job.launcher) == ExitStatus(code=2)
    result = job.stop(5)
    assert result.complete
    wait_for("all to be reaped", lambda: job.stop(0).complete and not zombies_of(job), seconds=60)


def test_another_attempt_is_not_of_this_job(spec: Spec) -> None:
    first = LocalPlatform().start(spec("exec sleep 1000"))
    second = LocalPlatform().start(spec("exec sleep 1000", attempt="resume"))
    assert [process.identity for process in second.processes()] == [second.launcher]
    assert second.stop(5).complete
    assert state(first.launcher) == "alive"
    assert first.stop(5).complete


def test_a_job_is_born_on_its_cores_and_the_harness_keeps_its_own(spec: Spec) -> None:
    before = os.sched_getaffinity(0)
    core = max(before)
    job = LocalPlatform().start(spec("exec sleep 1000", cores=(core,)))
    assert os.sched_getaffinity(job.launcher.pid) == {core}
    assert os.sched_getaffinity(0) == before
    job.stop(5)


def test_status_and_stop_may_be_asked_from_many_threads(spec: Spec) -> None:
    job = LocalPlatform().start(spec("for n in 1 2 3 4; do sleep 1000 & done; exit 0"))
    exit_of(job, job.launcher)  # or it could be one of the four
    identities = [process.identity for process in seen(job, 4)]
    answers: list[ExitStatus | None] = []

    def ask() -> None:
        for identity in identities:
            answers.append(wait_for("status", lambda identity=identity: job.exit_status(identity), seconds=60))  # type: ignore[misc]

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    job.stop(10)
    for thread in threads:
        thread.join()
    assert answers == [ExitStatus(signal=signal.SIGTERM)] * 16


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_subreaper_is_put_back_as_it_was() -> None:
    out = run_python(
        "from chaos.machine.linux.children import subreaper, _get_subreaper as get\n"
        "print(get())\n"
        "with subreaper():\n"
        "    with subreaper(): print(get())\n"
        "    print(get())\n"
        "print(get())\n"
    )
    assert out.split() == ["False", "True", "True", "False"]


def test_an_ignored_sigchld_loses_no_status() -> None:
    out = run_python(
        "import signal, os, subprocess\n"
        "from chaos.machine.linux.children import subreaper\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "with subreaper():\n"
        "    print(subprocess.run(['sh', '-c', 'exit 6']).returncode)\n"
        "print(signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN)\n"
    )
    assert out.split() == ["6", "True"]


def test_an_ignored_sigchld_is_an_error_where_it_cannot_be_helped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)
    errors: list[str] = []

    def enter() -> None:
        try:
            with subreaper():
                errors.append("entered")
        except RuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert errors == ["SIGCHLD is ignored, so exit statuses are lost; run from the main thread"]


def test_nothing_is_known_of_a_child_that_was_reaped_elsewhere(start: Start) -> None:
    child = start("sh", "-c", "exit 5")
    identity = identify(child.pid)
    child.wait()
    assert collect(identity) == ExitStatus()


@pytest.mark.parametrize(
    ("status", "text"),
    [(ExitStatus(signal=9), "signal 9"), (ExitStatus(code=0), "exit code 0"), (ExitStatus(), "unknown")],
)
def test_a_status_reads_well(status: ExitStatus, text: str) -> None:
    assert str(status) == text


def test_what_a_process_leaves_without_a_trace_of_the_run_is_the_jobs_and_ends_with_it(spec: Spec) -> None:
    # The one that starts it ends at once, so that nobody can have seen them side by side.
    job = LocalPlatform().start(spec("env -i setsid sleep 1000 & exit 0"))
    exit_of(job, job.launcher)
    # Before that it is the launcher's shell, and env, which have all signs of the run.
    sleeping = lambda: next((process for process in job.processes() if process.cmdline[:1] == ("sleep",)), None)  # noqa: E731
    orphan = wait_for("the orphan", sleeping, seconds=60)
    assert (orphan.attempt, orphan.ppid, orphan.cmdline) == (None, os.getpid(), ("sleep", "1000"))
    assert find_run_processes(job._spec.run) == []
    ended = job.stop(5)
    assert [process.identity for process in ended.ended] == [orphan.identity] and state(orphan.identity) == "gone"


def test_a_child_of_this_process_in_its_own_session_is_no_orphan_of_a_job(spec: Spec) -> None:
    job = LocalPlatform().start(spec("exec sleep 1000"))
    with subprocess.Popen(["sleep", "1000"], env={}) as child:
        try:
            assert [process.identity for process in seen(job, 1)] == [job.launcher]
            job.stop(5)
            assert child.poll() is None
        finally:
            child.kill()
