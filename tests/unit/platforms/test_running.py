"""Jobs that chaos has not started are found by what msrun gives their processes, each launch apart from every other."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.jobs.adopt import chosen_ranks, named_job
from chaos.jobs.kind import JobError
from chaos.platforms.adopted import AdoptedJob
from chaos.platforms.running import RunningJob, Survey, survey
from chaos.run.wait import wait_for
from tests.unit.platforms.fake_proc import FakeProc

CONTAINER = "3f" * 32


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    (tmp_path / "proc").mkdir()
    return FakeProc(tmp_path / "proc")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def variables(rank: int, role: str = "MS_WORKER", port: int = 8118) -> dict[str, str]:
    """What msrun of MindSpore 2.10 gives a rank."""
    return {
        "MS_ROLE": role,
        "MS_NODE_ID": str(rank),
        "RANK_ID": str(rank),
        "RANK_SIZE": "2",
        "MS_WORKER_NUM": "2",
        "MS_SCHED_HOST": "127.0.0.1",
        "MS_SCHED_PORT": str(port),
    }


SCHEDULER = {name: value for name, value in variables(0, "MS_SCHED").items() if name != "MS_NODE_ID"}


def add_msrun(proc: FakeProc, base: int, work: Path, logs: str = "logs", launcher: bool = True) -> None:
    """What msrun starts, as it was seen: PIDs from ``base`` on; without its launcher its children are init's."""
    parent = base if launcher else 1
    if launcher:
        proc.add(base, 1, "python", "/venv/bin/msrun", "--log_dir=logs", "train.py", variables={}, cwd=work)
    proc.add(
        base + 1, parent, "python", "train.py", session=base, variables=SCHEDULER, cwd=work, log=work / logs / "s.log"
    )
    for rank in range(2):
        log = work / logs / f"worker_{rank}.log"
        own = variables(rank)
        proc.add(base + 10 * (rank + 1), parent, "python", "train.py", variables=own, cwd=work, log=log)
        if launcher:
            tail = ("/usr/bin/tail", "-f", str(log))
            proc.add(base + 10 * (rank + 1) + 1, parent, *tail, session=base, variables=own, cwd=work)


def found(job: RunningJob) -> list[tuple[str, int | None, int]]:
    return [(process.role, process.rank, process.pid) for process in job.processes]


def look(proc: FakeProc) -> Survey:
    return survey(proc.root)


def test_launcher_scheduler_and_ranks_are_told_apart_from_their_helpers(proc: FakeProc, work: Path) -> None:
    add_msrun(proc, 100, work)
    proc.add(112, 110, "python", "train.py", session=110, variables=variables(0), cwd=work)  # a data loader
    (job,) = look(proc).jobs
    assert found(job) == [("launcher", None, 100), ("scheduler", None, 101), ("rank", 0, 110), ("rank", 1, 120)]
    assert (job.scheduler, job.size) == ("127.0.0.1:8118", 2)
    assert {112, 111, 121} <= job.members


def test_two_jobs_side_by_side_are_two_even_with_the_same_address(proc: FakeProc, work: Path) -> None:
    add_msrun(proc, 100, work, "a")
    add_msrun(proc, 200, work, "b")
    assert [[process.pid for process in job.ranks] for job in look(proc).jobs] == [[110, 120], [210, 220]]


def test_what_an_earlier_launch_has_left_is_no_rank_of_the_new_one(proc: FakeProc, work: Path) -> None:
    """SIGKILL of msrun leaves its ranks alive; the next launch has the same address, port and directory."""
    add_msrun(proc, 100, work, launcher=False)
    add_msrun(proc, 200, work)
    assert [[process.pid for process in job.ranks] for job in look(proc).jobs] == [[110, 120], [210, 220]]


def test_without_a_launcher_the_directory_of_the_logs_tells_jobs_apart(proc: FakeProc, work: Path) -> None:
    """``msrun --join=False`` ends as soon as it has started the ranks."""
    add_msrun(proc, 100, work, "a", launcher=False)
    add_msrun(proc, 200, work, "b", launcher=False)
    assert [found(job)[0] for job in look(proc).jobs] == [("scheduler", None, 101), ("scheduler", None, 201)]


def test_ranks_that_a_shell_started_each_in_its_own_directory_are_one_job(proc: FakeProc, work: Path) -> None:
    proc.add(100, 1, "bash", "start.sh", comm="bash", variables={}, cwd=work)
    for rank in range(2):
        directory = work / f"device{rank}"
        own = {"RANK_ID": str(rank), "RANK_SIZE": "2", "RANK_TABLE_FILE": "/hccl.json"}
        proc.add(110 + rank, 100, "python", session=100, variables=own, cwd=directory, log=directory / "train.log")
    (job,) = look(proc).jobs
    assert [(process.rank, process.pid) for process in job.ranks] == [(0, 110), (1, 111)]


Apart = tuple[dict[str, str], dict[str, str]]


@pytest.mark.parametrize(
    "said",
    [
        ({"RANK_SIZE": "2"}, {"RANK_SIZE": "8"}),
        ({"RANK_TABLE_FILE": "/a.json"}, {"RANK_TABLE_FILE": "/b.json"}),
        ({"RANK_TABLE_FILE": "table.json"}, {"RANK_TABLE_FILE": "table.json"}),  # of its own directory each
        ({"MS_SCHED_HOST": "10.0.0.1", "MS_SCHED_PORT": "1"}, {"MS_SCHED_HOST": "10.0.0.1", "MS_SCHED_PORT": "2"}),
        ({}, {}),  # only their directories tell them apart
    ],
    ids=["size", "rank table", "relative rank table", "scheduler", "directory"],
)
def test_jobs_that_one_shell_has_started_are_apart_where_they_contradict_each_other(
    proc: FakeProc, work: Path, said: Apart
) -> None:
    proc.add(100, 1, "bash", "start.sh", comm="bash", variables={}, cwd=work)
    for job, own in enumerate(said):
        place = work / f"job{job}"
        for rank in (2 * job, 2 * job + 1):
            of_rank = {"RANK_SIZE": "8", **own, "RANK_ID": str(rank)}
            log = place / "logs" / f"{rank}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            proc.add(110 + rank, 100, "python", "t.py", session=100, variables=of_rank, cwd=place, log=log)
    found_now = look(proc)
    assert [[process.rank for process in job.ranks] for job in found_now.jobs] == [[0, 1], [2, 3]]
    job = named_job(found_now, "110", here=Path("/"), proc_root=proc.root)
    with pytest.raises(JobError, match=r"(?s)--rank 3: not among .* \(0, 1 of .*job0/logs.*job1/logs"):
        chosen_ranks(job, [3], "110", here=Path("/"), all_jobs=found_now.jobs)


def test_one_rank_table_by_two_names_is_one(proc: FakeProc, work: Path) -> None:
    (work / "hccl.json").touch()
    proc.add(100, 1, "bash", "start.sh", comm="bash", variables={}, cwd=work)
    for rank, table in enumerate((str(work / "hccl.json"), "../hccl.json")):
        directory = work / f"device{rank}"
        directory.mkdir()
        own = {"RANK_ID": str(rank), "RANK_SIZE": "2", "RANK_TABLE_FILE": table}
        proc.add(110 + rank, 100, "python", "t.py", session=100, variables=own, cwd=directory)
    (job,) = look(proc).jobs
    assert [process.rank for process in job.ranks] == [0, 1]


def test_a_scheduler_without_the_rank_table_is_of_the_launch(proc: FakeProc, work: Path) -> None:
    proc.add(100, 1, "bash", "start.sh", comm="bash", variables={}, cwd=work)
    proc.add(101, 100, "python", "t.py", session=100, variables=SCHEDULER, cwd=work)
    proc.add(110, 100, "python", "t.py", variables={**variables(0), "RANK_TABLE_FILE": "/a.json"}, cwd=work)
    (job,) = look(proc).jobs
    assert found(job) == [("scheduler", None, 101), ("rank", 0, 110)]


def test_a_launcher_whose_processes_contradict_each_other_names_no_job(proc: FakeProc, work: Path) -> None:
    proc.add(100, 1, "python", "/venv/bin/msrun", "train.py", variables={}, cwd=work)
    for rank, size in enumerate(("2", "8")):
        own = {**variables(rank), "MS_WORKER_NUM": size}
        proc.add(110 + rank, 100, "python", "train.py", variables=own, cwd=work)
    found_now = look(proc)
    with pytest.raises(JobError, match=r"(?s)contradict each other.*--job 110 names.*--job 111 names"):
        named_job(found_now, "100", here=Path("/"), proc_root=proc.root)
    assert [one.pid for one in named_job(found_now, "111", here=Path("/"), proc_root=proc.root).ranks] == [111]


def test_a_shell_that_only_runs_the_program_is_not_the_rank(proc: FakeProc, work: Path) -> None:
    proc.add(110, 1, "bash", "run.sh", comm="bash", variables=variables(0), cwd=work)
    proc.add(111, 110, "python", "train.py", comm="python", session=110, variables=variables(0), cwd=work)
    (job,) = look(proc).jobs
    assert [process.pid for process in job.ranks] == [111]


def test_what_a_shell_calls_on_its_way_is_not_the_rank(proc: FakeProc, work: Path) -> None:
    proc.add(110, 1, "bash", "run.sh", comm="bash", variables=variables(0), cwd=work)
    proc.add(111, 110, "mkdir", "-p", "output", comm="mkdir", session=110, variables=variables(0), cwd=work)
    (job,) = look(proc).jobs
    assert [process.pid for process in job.ranks] == [110]


@pytest.mark.parametrize("tools", [("timeout",), ("strace",), ("bash", "timeout"), ("bash", "bash", "strace")])
def test_a_tool_that_runs_the_program_is_not_the_rank(tools: tuple[str, ...], proc: FakeProc, work: Path) -> None:
    own = variables(0)
    for pid, (tool, parent) in enumerate(zip(tools, (1, 110, 111), strict=False), 110):
        proc.add(pid, parent, tool, "…", comm=tool, session=110, variables=own, cwd=work)
    below = 110 + len(tools)
    proc.add(below, below - 1, "python", "train.py", comm="python", session=110, variables=own, cwd=work)
    if "bash" in tools:
        proc.add(120, 110, "tee", "log", comm="tee", session=110, variables=own, cwd=work)
    (job,) = look(proc).jobs
    assert [process.pid for process in job.ranks] == [below]


def test_what_dead_ranks_have_left_is_no_rank_and_is_named_in_the_refusal(proc: FakeProc, work: Path) -> None:
    """msrun starts a ``tail -f`` with each rank's variables, and Python helpers of its own."""
    log = work / "logs" / "worker_0.log"
    proc.add(111, 1, "/usr/bin/tail", "-f", str(log), session=100, variables=variables(0), cwd=work)
    helper = "from multiprocessing.resource_tracker import main;main(29)"
    proc.add(112, 1, "python", "-c", helper, session=110, variables=variables(0), cwd=work)
    survey = look(proc)
    assert (survey.jobs, [one.pid for one in survey.left]) == ((), [111, 112])
    for name in (str(work), "111"):
        with pytest.raises(JobError, match=r"(?s)no rank runs there any more.*tail -f .*PID 111"):
            named_job(survey, name, here=Path("/"), proc_root=proc.root)


def test_what_dead_ranks_have_left_is_no_rank_of_a_job_whose_launcher_lives(proc: FakeProc, work: Path) -> None:
    add_msrun(proc, 100, work)
    for rank in (110, 120):
        shutil.rmtree(proc.root / str(rank))
    (job,) = look(proc).jobs
    assert found(job) == [("launcher", None, 100), ("scheduler", None, 101)]


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
        with AdoptedJob([rank.identity]) as held:
            held.signal(rank.identity, signal.SIGKILL)
            wait_for("its end", lambda: held.exit_status(rank.identity), seconds=120)
    finally:
        outer.kill()
        outer.wait()


def here(found: Survey, logs: Path) -> list[RunningJob]:
    return [job for job in found.jobs if job.processes[0].directories.logs == str(logs)]


AS_NOBODY = """
import os, sys
from pathlib import Path
from chaos.jobs.adopt import named_job
from chaos.jobs.kind import JobError
from chaos.platforms.running import survey
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
    assert f"Of the user with the number 0 there are Python processes (PID {rank.pid})" in by_pid
    assert "call chaos as that user (`sudo -u '#0' …`) or as root" in by_pid
    assert "may not read" in by_directory
