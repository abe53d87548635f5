"""Jobs that chaos has not started are found by what msrun gives their processes, each launch apart from every other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.attach.choose import named_job
from chaos.base.wait import wait_for
from chaos.jobs.kind import JobError
from chaos.machine.running.adopted import AdoptedJob
from chaos.machine.running.running import RunningJob, Survey, survey
from tests.unit.machine.fake_proc import FakeProc
from tests.unit.machine.running.fake_jobs import add_msrun, found, look, variables

CONTAINER = "3f" * 32


def test_launcher_scheduler_and_ranks_are_told_apart_from_their_helpers(proc: FakeProc, work: Path) -> None:
    add_msrun(proc, 100, work)
    proc.add(112, 110, "python", "train.py", session=110, variables=variables(0), cwd=work)  # a data loader
    (job,) = look(proc).jobs
    assert found(job) == [("launcher", None, 100), ("scheduler", None, 101), ("rank", 0, 110), ("rank", 1, 120)]
    assert (job.scheduler, job.size) == ("127.0.0.1:8118", 2)
    assert {112, 111, 121} <= job.members


def test_a_rank_whose_output_goes_through_tee_logs_where_tee_writes(proc: FakeProc, work: Path) -> None:
    proc.add(110, 1, "python", "train.py", variables=variables(0), cwd=work)
    (proc.root / "110" / "fd" / "1").symlink_to("pipe:[77]")
    for pid, pipe in ((111, 76), (112, 77)):
        proc.add(pid, 1, "tee", "x.log", comm="tee", session=110, variables={}, cwd=work)
        log = work / f"logs{pipe}" / "x.log"
        log.parent.mkdir()
        log.touch()
        (proc.root / str(pid) / "fd" / "0").symlink_to(f"pipe:[{pipe}]")
        (proc.root / str(pid) / "fd" / "3").symlink_to(log)
    found_now = look(proc)
    assert found_now.jobs[0].ranks[0].directories.logs == str(work / "logs77")
    assert named_job(found_now, str(work / "logs77"), here=Path("/"), proc_root=proc.root) == found_now.jobs[0]
    with pytest.raises(JobError, match="no job on this host"):
        named_job(found_now, str(work / "logs76"), here=Path("/"), proc_root=proc.root)


def test_a_rank_id_alone_makes_no_rank(proc: FakeProc, work: Path) -> None:
    proc.add(110, 1, "python", "-m", "http.server", variables={"RANK_ID": "0"}, cwd=work)
    assert look(proc).jobs == ()


def test_a_container_is_told_by_its_cgroup_and_the_pid_in_it(proc: FakeProc, work: Path) -> None:
    cgroup = f"0::/system.slice/docker-{CONTAINER}.scope\n"
    proc.add(110, 1, "python", "train.py", variables=variables(0), cwd=work, cgroup=cgroup, inner_pid=7)
    pod = f"5:cpu:/kubepods/burstable/pod1b2c/{'ab' * 32}\n"
    proc.add(120, 1, "python", "train.py", variables=variables(1), cwd=work, cgroup=pod)
    (job,) = look(proc).jobs
    assert [str(process.container) for process in job.ranks] == [
        f"{CONTAINER[:12]} (PID 7 in it)",
        "abababababab (PID 120 in it)",
    ]


def test_python_programs_that_may_not_be_looked_into_are_told(proc: FakeProc, work: Path) -> None:
    proc.add(110, 1, "/usr/bin/python3", "train.py", variables=None)
    proc.add(111, 1, "nginx", variables=None)
    proc.add(112, 2, variables=None)  # of the kernel's
    (hidden,) = look(proc).hidden
    assert (hidden.pid, hidden.uid, hidden.cmdline) == (110, proc.root.stat().st_uid, ("/usr/bin/python3", "train.py"))


def test_a_rank_in_a_container_of_this_host_is_found_and_hit_from_outside(tmp_path: Path) -> None:
    """A PID and a mount namespace of its own stand in for the container."""
    inside = ["unshare", "--pid", "--mount-proc", "--fork", "--kill-child"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a PID namespace of one's own needs unshare(1) and CAP_SYS_ADMIN")
    given = [f"{name}={value}" for name, value in variables(1, port=8119).items()]
    log = tmp_path / "worker_1.log"
    with log.open("wb") as output:
        outer = subprocess.Popen(
            [*inside, "env", *given, sys.executable, "-c", "input()"],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=output,
        )
    try:
        job = wait_for("the rank", lambda: next(iter(here(survey(), log.parent)), None), seconds=120)
        (rank,) = job.ranks
        assert rank.pid != outer.pid
        assert rank.container is not None and rank.container.pid == 1
        assert rank.directories.logs == str(tmp_path)
        with AdoptedJob([rank.identity]) as adopted_job:
            adopted_job.signal(rank.identity, signal.SIGKILL)
            wait_for("its end", lambda: adopted_job.exit_status(rank.identity), seconds=120)
    finally:
        outer.kill()
        outer.wait()


def here(found: Survey, logs: Path) -> list[RunningJob]:
    return [job for job in found.jobs if job.processes[0].directories.logs == str(logs)]


AS_NOBODY = """
import os, sys
from pathlib import Path
from chaos.attach.choose import named_job
from chaos.jobs.kind import JobError
from chaos.machine.running.running import survey
survey()  # what is imported late must be there: another user may not read where Python is installed
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
for name in sys.argv[1:]:
    try:
        named_job(survey(), name, here=Path("/"))
    except JobError as error:
        print(error)
"""


def test_the_job_of_another_user_is_refused_with_what_to_do(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be another user for a moment")
    rank = subprocess.Popen([sys.executable, "-c", "input()"], cwd=tmp_path, env=variables(0), stdin=subprocess.PIPE)
    try:
        ran = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(rank.pid), "/tmp"], capture_output=True, text=True, check=True
        )
    finally:
        rank.kill()
        rank.wait()
    by_pid, by_directory = (text for text in ran.stdout.split("--job ") if text)
    assert f"This user may not read the environment of Python processes of user 0 (PID {rank.pid})" in by_pid
    assert "call chaos as that user (`sudo -u '#0' …`) or as root" in by_pid
    assert "may not read" in by_directory
