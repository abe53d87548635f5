"""Jobs of torchrun are found by what its agent gives their ranks; their nodes on this host are one job."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chaos.attach.choose import chosen_ranks, named_job, watchable_job
from chaos.jobs.kind import JobError
from chaos.machine.running.running import RunningJob
from tests.unit.machine.fake_proc import PYTORCH, FakeProc
from tests.unit.machine.running.fake_jobs import add_msrun, add_torchrun, found, look, of_torchrun, variables


def ranks(job: RunningJob) -> list[tuple[int | None, int]]:
    return [(process.rank, process.pid) for process in job.ranks]


def chosen(proc: FakeProc, name: object, rank: int) -> int:
    job = named_job(look(proc), str(name), here=Path("/"), proc_root=proc.root)
    (process,) = chosen_ranks(job, [rank], str(name), here=Path("/"))
    return process.pid


def test_torchrun_and_its_ranks_are_a_job_by_every_name(proc: FakeProc, work: Path) -> None:
    add_torchrun(proc, 100, work)
    (job,) = look(proc).jobs
    assert found(job) == [("launcher", None, 100), ("rank", 0, 110), ("rank", 1, 120)]
    assert (job.size, job.master, job.run_id, job.scheduler) == (2, "127.0.0.1:29500", "none", None)
    logs = work / "logs" / "none_ab12"
    names = (work, work / "logs", logs, logs / "attempt_0", logs / "attempt_0" / "1", 100, 110, 120)
    assert [chosen(proc, name, 1) for name in names] == [120] * len(names)
    with pytest.raises(JobError, match=r"(?s)this rank neither logs nor works there; name it by its PID.*PID 120"):
        chosen(proc, logs / "attempt_0" / "0", 1)
    assert str(job) == (
        f"the job with ranks 0-1 that logs in {logs}/attempt_0, 2 ranks in all, master 127.0.0.1:29500 "
        "(--job 110 names it too)"
    )


def test_the_log_directory_names_the_job_also_where_nobody_works_there(
    proc: FakeProc, work: Path, tmp_path: Path
) -> None:
    add_torchrun(proc, 100, work, logs=str(tmp_path / "elsewhere" / "logs"))
    assert chosen(proc, tmp_path / "elsewhere" / "logs", 1) == 120
    with pytest.raises(JobError, match="no job on this host"):
        chosen(proc, tmp_path / "elsewhere", 1)


@pytest.mark.parametrize(
    ("program", "launchers"),
    [(("-m", "torch.distributed.run"), [100]), (("/venv/bin/ft_launcher",), [100]), (("/x/own.py",), [])],
)
def test_a_launcher_of_another_name_makes_no_difference_to_its_ranks(
    proc: FakeProc, work: Path, program: tuple[str, ...], launchers: list[int]
) -> None:
    proc.add(100, 1, "python", *program, "train.py", variables={}, cwd=work)
    for rank in range(2):
        proc.add(110 + rank, 100, "python", "train.py", variables=of_torchrun(rank), cwd=work)
    (job,) = look(proc).jobs
    assert ranks(job) == [(0, 110), (1, 111)]
    assert [process.pid for process in job.processes if process.role == "launcher"] == launchers


def test_nothing_that_has_a_ranks_environment_is_one(proc: FakeProc, work: Path) -> None:
    """Data workers are forked or spawned, torch.compile starts a pool, a rank calls programs."""
    add_torchrun(proc, 100, work)
    own = of_torchrun(0)
    proc.add(130, 110, "python", "-u", "train.py", session=110, variables=own, cwd=work, forked=True)
    spawned = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=7)"
    proc.add(131, 110, "python", "-c", spawned, session=110, variables=own, cwd=work)
    pool = "/venv/torch/_inductor/compile_worker/__main__.py"
    proc.add(132, 110, "python", pool, session=110, variables=own, cwd=work, trains=True, library=PYTORCH)
    proc.add(133, 132, "python", pool, session=110, variables=own, cwd=work, forked=True)
    proc.add(134, 110, "npu-smi", "info", session=110, variables=own, cwd=work)
    (job,) = look(proc).jobs
    assert ranks(job) == [(0, 110), (1, 120)]
    assert {130, 131, 132, 133, 134} <= job.members
    shutil.rmtree(proc.root / "110")
    for pid in (130, 131, 132, 134):
        stat = proc.root / str(pid) / "stat"
        stat.write_text(stat.read_text().replace(") S 110 ", ") S 1 "))
    assert ranks(named_job(look(proc), str(work), here=Path("/"), proc_root=proc.root)) == [(1, 120)]
    with pytest.raises(JobError, match="--rank 0: not among"):
        chosen(proc, work, 0)


def test_without_sessions_of_their_own_ranks_are_the_programs_that_torchrun_has_started(
    proc: FakeProc, work: Path
) -> None:
    proc.add(100, 1, "python", "/venv/bin/torchrun", "train.py", variables={}, cwd=work)
    for rank in range(2):
        proc.add(110 + rank, 100, "python", "train.py", session=100, variables=of_torchrun(rank), cwd=work)
    proc.add(112, 110, "python", "train.py", session=100, variables=of_torchrun(0), cwd=work, forked=True)
    (job,) = look(proc).jobs
    assert ranks(job) == [(0, 110), (1, 111)]
    assert not any(process.doubt for process in job.ranks)


@pytest.mark.parametrize("loaded", [True, False])
def test_an_orphan_without_a_session_is_a_rank_once_it_has_loaded_its_framework(
    proc: FakeProc, work: Path, loaded: bool
) -> None:
    for rank in range(2):
        own = of_torchrun(rank)
        proc.add(110 + rank, 1, "python", "t.py", session=50, variables=own, cwd=work, trains=loaded, library=PYTORCH)
    if loaded:
        assert chosen(proc, work, 1) == 111
    else:
        with pytest.raises(JobError, match="has not loaded MindSpore or PyTorch"):
            chosen(proc, work, 1)


def test_pytorch_is_no_framework_of_a_rank_of_mindspore(proc: FakeProc, work: Path) -> None:
    for rank in range(2):
        own, pid = variables(rank), 110 + rank
        proc.add(pid, 1, "python", "t.py", session=50, variables=own, cwd=work, trains=True, library=PYTORCH)
    with pytest.raises(JobError, match=r"has not loaded MindSpore \(yet\)"):
        chosen(proc, work, 1)


def test_ranks_that_live_on_without_torchrun_are_one_job(proc: FakeProc, work: Path) -> None:
    """SIGKILL of torchrun leaves all of them; each has its own log directory."""
    add_torchrun(proc, 100, work, launcher=False)
    (job,) = look(proc).jobs
    assert found(job) == [("rank", 0, 110), ("rank", 1, 120)]


@pytest.mark.parametrize("other", [{}, {"MASTER_PORT": "40505"}], ids=["static", "c10d"])
def test_what_an_earlier_torchrun_has_left_is_no_rank_of_the_new_job(
    proc: FakeProc, work: Path, other: dict[str, str]
) -> None:
    add_torchrun(proc, 100, work, launcher=False)
    add_torchrun(proc, 200, work, other=other)
    assert [[process.pid for process in job.ranks] for job in look(proc).jobs] == [[110, 120], [210, 220]]
    with pytest.raises(JobError, match=r"(?s)2 jobs run there.*--job 110 names.*--job 210 names"):
        chosen(proc, work, 1)
    assert (chosen(proc, 110, 1), chosen(proc, 200, 1)) == (120, 220)


def test_two_nodes_on_this_host_are_one_job(proc: FakeProc, work: Path) -> None:
    add_torchrun(proc, 100, work, node=0, nodes=2, logs="a")
    add_torchrun(proc, 200, work, node=1, nodes=2, logs="b", other={"TORCHELASTIC_RESTART_COUNT": "1"})
    (job,) = look(proc).jobs
    assert found(job)[:2] == [("launcher", None, 100), ("launcher", None, 200)]
    assert ranks(job) == [(0, 110), (1, 120), (2, 210), (3, 220)]
    assert [chosen(proc, name, 3) for name in (work, work / "b", 100, 200, 110)] == [220] * 5
    assert chosen(proc, work / "a", 1) == 120
    with pytest.raises(JobError, match="this rank neither logs nor works there"):
        chosen(proc, work / "a", 3)
    assert str(job).startswith(f"the job with ranks 0-3 that works in {work}, 4 ranks in all")


@pytest.mark.parametrize(
    "other",
    [
        {"TORCHELASTIC_RUN_ID": "x"},
        {"MASTER_PORT": "1"},
        {"MASTER_ADDR": "10.0.0.2"},
        {"WORLD_SIZE": "8"},
        {"GROUP_WORLD_SIZE": "4"},
        {"CHAOS_RUN": "r"},
        {"GROUP_RANK": "0"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_nodes_that_say_different_things_are_of_two_jobs(proc: FakeProc, work: Path, other: dict[str, str]) -> None:
    add_torchrun(proc, 100, work, node=0, nodes=2, logs="a")
    add_torchrun(proc, 200, work, node=1, nodes=2, logs="b", other=other)
    assert [[process.pid for process in job.ranks] for job in look(proc).jobs] == [[110, 120], [210, 220]]


@pytest.mark.parametrize(
    ("address", "jobs"),
    [("127.0.0.1", 2), ("localhost", 2), ("::1", 2), ("10.0.0.1", 1), ("master-0", 1)],
)
def test_a_loopback_address_joins_no_nodes_of_two_containers(
    proc: FakeProc, work: Path, address: str, jobs: int
) -> None:
    for node in range(2):
        network = f"net:[{node + 1}]"
        add_torchrun(
            proc,
            100 + 100 * node,
            work,
            node=node,
            nodes=2,
            logs=f"{node}",
            network=network,
            other={"MASTER_ADDR": address},
        )
    assert len(look(proc).jobs) == jobs


def test_a_node_that_was_left_is_not_taken_for_the_node_that_runs(proc: FakeProc, work: Path) -> None:
    add_torchrun(proc, 100, work, node=0, nodes=2, logs="a")
    add_torchrun(proc, 200, work, node=1, nodes=2, logs="b", launcher=False)
    assert len(look(proc).jobs) == 1  # the torchrun of one node was killed, and its ranks train on
    add_torchrun(proc, 300, work, node=1, nodes=2, logs="c")
    assert [[process.pid for process in job.ranks] for job in look(proc).jobs] == [[110, 120, 310, 320], [210, 220]]
    add_torchrun(proc, 400, work, node=0, nodes=2, logs="d", launcher=False)
    assert [[process.pid for process in job.ranks] for job in look(proc).jobs] == [
        [110, 120, 310, 320],
        [410, 420, 210, 220],
    ]


def test_of_two_jobs_that_say_the_same_no_nodes_are_joined(proc: FakeProc, work: Path) -> None:
    """As two copies of a composition of containers do, with host names of their own networks."""
    for base in (100, 300):
        for node in range(2):
            add_torchrun(
                proc, base + 100 * node, work, node=node, nodes=2, logs=f"{base}", other={"MASTER_ADDR": "master-0"}
            )
    assert [[process.pid for process in job.ranks] for job in look(proc).jobs] == [
        [110, 120],
        [210, 220],
        [310, 320],
        [410, 420],
    ]


@pytest.mark.parametrize("launcher", [True, False], ids=["torchrun", "left"])
def test_ranks_of_mindspore_that_torchrun_starts_are_found_once(proc: FakeProc, work: Path, launcher: bool) -> None:
    """``torchrun --no-python sh rank.sh``, whose script gives each rank the variables of msrun."""
    if launcher:
        proc.add(100, 1, "python", "/venv/bin/torchrun", "--no-python", "sh", variables={}, cwd=work)
    for rank in range(2):
        own, shell = {**of_torchrun(rank), **variables(rank)}, 110 + 10 * rank
        log = work / "logs" / "none_ab12" / "attempt_0" / str(rank) / "stdout.log"
        parent = 100 if launcher else 1
        proc.add(shell, parent, "sh", "rank.sh", comm="sh", variables=of_torchrun(rank), cwd=work, log=log)
        proc.add(shell + 1, shell, "python", "t.py", session=shell, variables=own, cwd=work, log=log, trains=True)
    (job,) = look(proc).jobs
    assert (ranks(job), job.size) == ([(0, 111), (1, 121)], 2)
    assert watchable_job(look(proc), str(work), here=Path("/")) == job
    assert chosen(proc, work, 1) == 121


def test_a_job_that_a_rank_of_msrun_starts_with_torchrun_has_torchruns_numbers(proc: FakeProc, work: Path) -> None:
    add_msrun(proc, 100, work)
    inherited = variables(1)
    proc.add(200, 120, "python", "/venv/bin/torchrun", "eval.py", session=120, variables=inherited, cwd=work)
    for rank in range(2):
        own = {**inherited, **of_torchrun(rank)}
        proc.add(210 + rank, 200, "python", "eval.py", variables=own, cwd=work, log=work / "eval" / f"{rank}.log")
    assert [ranks(job) for job in look(proc).jobs] == [[(0, 110), (1, 120)], [(0, 210), (1, 211)]]
    assert chosen(proc, work / "logs", 1) == 120


def test_a_job_that_a_rank_of_torchrun_starts_with_msrun_has_msruns_numbers(proc: FakeProc, work: Path) -> None:
    add_torchrun(proc, 100, work)
    inherited = of_torchrun(1)
    proc.add(200, 120, "python", "/venv/bin/msrun", "eval.py", session=120, variables=inherited, cwd=work)
    for rank in range(2):
        own = {**inherited, **variables(rank)}
        proc.add(210 + rank, 200, "python", "eval.py", variables=own, cwd=work, log=work / "eval" / f"{rank}.log")
    assert [(ranks(job), job.scheduler, job.master) for job in look(proc).jobs] == [
        ([(0, 110), (1, 120)], None, "127.0.0.1:29500"),
        ([(0, 210), (1, 211)], "127.0.0.1:8118", None),
    ]


def test_a_number_alone_is_the_nodes(proc: FakeProc, work: Path) -> None:
    pod = {"RANK": "1", "LOCAL_RANK": "0,1", "WORLD_SIZE": "4", "MASTER_ADDR": "master-0", "MASTER_PORT": "2222"}
    proc.add(50, 1, "bash", "train_start.sh", comm="bash", variables=pod, cwd=work)
    proc.add(60, 50, "python", "/venv/bin/torchrun", "t.py", session=50, variables=pod, cwd=work)
    assert look(proc).jobs == ()
    with pytest.raises(JobError, match=r"process 60 does not belong .*TORCHELASTIC_RUN_ID with LOCAL_RANK and RANK"):
        named_job(look(proc), "60", here=Path("/"), proc_root=proc.root)
    for rank in range(2, 4):
        own = {**pod, **of_torchrun(rank, nodes=2)}
        proc.add(60 + rank, 60, "python", "t.py", variables=own, cwd=work)
    (job,) = look(proc).jobs
    assert found(job) == [("launcher", None, 60), ("rank", 2, 62), ("rank", 3, 63)]


def test_a_job_that_chaos_run_has_started_is_refused(proc: FakeProc, work: Path) -> None:
    add_torchrun(proc, 100, work, other={"CHAOS_RUN": "run-1"})
    with pytest.raises(JobError, match="`chaos run` has started this job"):
        chosen(proc, work, 0)
