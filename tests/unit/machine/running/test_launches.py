"""Processes are of one running job by who has started them and by what they say of it, and of no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.attach.choose import chosen_ranks, named_job
from chaos.jobs.kind import JobError
from tests.unit.machine.fake_proc import FakeProc
from tests.unit.machine.running.fake_jobs import SCHEDULER, add_msrun, found, look, variables


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
        log = directory / "train.log"
        proc.add(110 + rank, 100, "python", session=100, variables=own, cwd=directory, log=log, trains=True)
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
    for number, own in enumerate(said):
        place = work / f"job{number}"
        for rank in (2 * number, 2 * number + 1):
            of_rank = {"RANK_SIZE": "8", **own, "RANK_ID": str(rank)}
            log = place / "logs" / f"{rank}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            proc.add(110 + rank, 100, "python", "t.py", session=100, variables=of_rank, cwd=place, log=log)
    found_now = look(proc)
    assert [[process.rank for process in job.ranks] for job in found_now.jobs] == [[0, 1], [2, 3]]
    job = named_job(found_now, "110", here=Path("/"), proc_root=proc.root)
    with pytest.raises(JobError, match=r"(?s)--rank 3: not among .* \(0-1 of .*job0/logs.*job1/logs"):
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
    assert [process.pid for process in named_job(found_now, "111", here=Path("/"), proc_root=proc.root).ranks] == [111]


POD = {name: value for name, value in variables(0).items() if name not in ("MS_NODE_ID", "RANK_ID")}
"""What the Ascend Operator gives everything in a pod of a worker, as far as it is of interest here."""


def chosen(proc: FakeProc, name: object, rank: int) -> int:
    job = named_job(look(proc), str(name), here=Path("/"), proc_root=proc.root)
    (process,) = chosen_ranks(job, [rank], str(name), here=Path("/"))
    return process.pid


@pytest.mark.parametrize("role", ["MS_WORKER", "MS_SCHED"])
def test_shell_and_msrun_with_the_role_of_their_pod_are_no_ranks(proc: FakeProc, work: Path, role: str) -> None:
    pod = {**POD, "MS_ROLE": role}
    proc.add(50, 1, "bash", "-c", "msrun …", comm="bash", variables=pod, cwd=work)
    proc.add(60, 50, "python", "/venv/bin/msrun", "t.py", session=50, variables=pod, cwd=work)
    for rank in range(2):
        log = work / "logs" / f"worker_{rank}.log"
        proc.add(70 + rank, 60, "python", "t.py", variables=variables(rank), cwd=work, log=log)
    (job,) = look(proc).jobs
    assert found(job) == [("launcher", None, 60), ("rank", 0, 70), ("rank", 1, 71)]
    assert [chosen(proc, name, 1) for name in (work, work / "logs", 60, 70, 71)] == [71] * 5


@pytest.mark.parametrize("starter", ["bash", "python"])
def test_a_script_with_the_role_of_its_pod_that_starts_the_ranks_is_none(
    proc: FakeProc, work: Path, starter: str
) -> None:
    proc.add(50, 1, starter, "start", comm=starter, variables=POD, cwd=work)
    scheduler = {**POD, "MS_ROLE": "MS_SCHED"}
    proc.add(51, 50, "python", "t.py", session=50, variables=scheduler, cwd=work, log=work / "logs" / "s.log")
    for rank in range(2):
        own, log = variables(rank), work / "logs" / "all.log"
        proc.add(70 + rank, 50, "python", "t.py", session=50, variables=own, cwd=work, log=log, trains=True)
    assert [process.rank for job in look(proc).jobs for process in job.ranks] == [0, 1]
    if starter == "bash":
        assert [chosen(proc, name, 1) for name in (work, 70)] == [71, 71]


def test_a_worker_without_a_number_that_starts_a_job_is_a_rank_all_the_same(proc: FakeProc, work: Path) -> None:
    proc.add(50, 1, "bash", "-c", "msrun …", comm="bash", variables=POD, cwd=work)
    proc.add(60, 50, "python", "/venv/bin/msrun", "t.py", session=50, variables=POD, cwd=work)
    proc.add(70, 60, "python", "t.py", variables=POD, cwd=work)
    proc.add(80, 70, "python", "/venv/bin/msrun", "eval.py", session=70, variables=POD, cwd=work)
    proc.add(90, 80, "python", "eval.py", variables=variables(0), cwd=work)
    assert [found(job) for job in look(proc).jobs] == [
        [("launcher", None, 60), ("rank", None, 70)],
        [("launcher", None, 80), ("rank", 0, 90)],
    ]


@pytest.mark.parametrize("launcher", [True, False], ids=["msrun", "shell"])
@pytest.mark.parametrize("through", [True, False], ids=["through a shell", "itself"])
@pytest.mark.parametrize("said", [{"MS_WORKER_NUM": "1"}, {"RANK_TABLE_FILE": "/other.json"}, {"MS_SCHED_PORT": "1"}])
def test_what_a_rank_has_started_makes_no_job_of_its_own(
    proc: FakeProc, work: Path, said: dict[str, str], through: bool, launcher: bool
) -> None:
    if launcher:
        proc.add(100, 1, "python", "/venv/bin/msrun", "t.py", variables={}, cwd=work)
    else:
        proc.add(100, 1, "bash", "start.sh", comm="bash", variables={}, cwd=work)
    for rank in range(2):
        log = work / "logs" / f"{rank}.log"
        proc.add(110 + rank, 100, "python", "t.py", variables=variables(rank), cwd=work, log=log)
    if through:
        proc.add(150, 110, "sh", "-c", "…", comm="sh", session=110, variables=variables(0), cwd=work)
    own = {**variables(0), **said}
    proc.add(151, 150 if through else 110, "python", "eval.py", session=110, variables=own, cwd=work, trains=True)
    (job,) = look(proc).jobs
    assert [process.pid for process in job.ranks] == [110, 111]
    assert (chosen(proc, work, 0), chosen(proc, work, 1)) == (110, 111)
    if launcher:
        assert chosen(proc, 100, 1) == 111


def test_a_job_that_a_rank_starts_with_a_launcher_is_one_of_its_own(proc: FakeProc, work: Path) -> None:
    own = variables(0)
    proc.add(70, 1, "python", "t.py", variables=own, cwd=work, log=work / "a" / "0.log")
    proc.add(80, 70, "python", "/venv/bin/msrun", "eval.py", session=70, variables=own, cwd=work)
    proc.add(90, 80, "python", "eval.py", variables=own, cwd=work, log=work / "b" / "0.log")
    assert [[process.pid for process in job.ranks] for job in look(proc).jobs] == [[70], [90]]
    assert (chosen(proc, work / "a", 0), chosen(proc, work / "b", 0)) == (70, 90)


@pytest.mark.parametrize("own", [variables(0), {"RANK_ID": "0", "RANK_SIZE": "2", "RANK_TABLE_FILE": "/a.json"}])
def test_a_program_with_the_rank_id_of_a_scheduler_that_starts_ranks_is_none_of_their_job(
    proc: FakeProc, work: Path, own: dict[str, str]
) -> None:
    said = {"RANK_ID": "0", "RANK_SIZE": "2"}
    proc.add(100, 1, "python", "start.py", variables=said, cwd=work, log=work / "a" / "log")
    for rank in range(2):
        of_rank = {**own, "RANK_ID": str(rank)}
        if "MS_NODE_ID" in own:
            of_rank["MS_NODE_ID"] = str(rank)
        log = work / "b" / "all.log"
        proc.add(110 + rank, 100, "python", "t.py", session=100, variables=of_rank, cwd=work, log=log, trains=True)
    assert (chosen(proc, 110, 0), chosen(proc, 111, 1)) == (110, 111)


@pytest.mark.parametrize("tables", [("{}", "{}\n"), ("{}", "[]"), ("", ""), ("{}", None)])
def test_copies_of_a_rank_table_are_one_table_where_they_are_equal(
    proc: FakeProc, work: Path, tables: tuple[str, str | None]
) -> None:
    """Each rank has its own, by a relative name; a third has the first one's by an absolute name."""
    proc.add(100, 1, "bash", "start.sh", comm="bash", variables={}, cwd=work)
    for rank, table in enumerate((*tables, str(work / "device0" / "t.json"))):
        directory = work / f"device{rank}"
        directory.mkdir()
        if rank < 2 and table is not None:
            (directory / "t.json").write_text(table)
        own = {"RANK_ID": str(rank), "RANK_SIZE": "3", "RANK_TABLE_FILE": "t.json" if rank < 2 else str(table)}
        proc.add(110 + rank, 100, "python", "t.py", session=100, variables=own, cwd=directory, trains=True)
    equal = tables == ("{}", "{}\n")
    expected = [[0, 1, 2]] if equal else [[0, 2], [1]]
    assert [[process.rank for process in job.ranks] for job in look(proc).jobs] == expected
    if equal:
        assert chosen(proc, 110, 1) == 111


def test_copies_of_a_rank_table_that_two_shells_have_are_of_two_jobs(proc: FakeProc, work: Path) -> None:
    for rank in range(2):
        shell, directory = 100 + 100 * rank, work / f"device{rank}"
        directory.mkdir()
        (directory / "t.json").write_text("{}")
        proc.add(shell, 1, "bash", "start.sh", comm="bash", variables={}, cwd=work)
        own = {"RANK_ID": str(rank), "RANK_SIZE": "2", "RANK_TABLE_FILE": "t.json"}
        proc.add(shell + 10, shell, "python", "t.py", session=shell, variables=own, cwd=directory, trains=True)
    assert [[process.rank for process in job.ranks] for job in look(proc).jobs] == [[0], [1]]
