"""Whatever carries a rank's environment is the rank only where that is proved; else it is hit by its own PID alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chaos.attach.choose import chosen_ranks, named_job, watchable_job
from chaos.jobs.kind import JobError
from tests.unit.machine.fake_proc import FakeProc
from tests.unit.machine.running.fake_jobs import SCHEDULER, add_msrun, found, look, variables


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
    assert (survey.jobs, [process.pid for process in survey.left]) == ((), [111, 112])
    for name in (str(work), "111"):
        with pytest.raises(JobError, match=r"(?s)no rank runs there any more.*tail -f .*PID 111"):
            named_job(survey, name, here=Path("/"), proc_root=proc.root)


def test_what_dead_ranks_have_left_is_no_rank_of_a_job_whose_launcher_lives(proc: FakeProc, work: Path) -> None:
    add_msrun(proc, 100, work)
    for rank in (110, 120):
        shutil.rmtree(proc.root / str(rank))
    (job,) = look(proc).jobs
    assert found(job) == [("launcher", None, 100), ("scheduler", None, 101)]


def test_what_was_forked_is_no_rank_even_where_it_leads_a_session(proc: FakeProc, work: Path) -> None:
    proc.add(111, 1, "python", "train.py", session=110, variables=variables(0), cwd=work, forked=True)
    proc.add(121, 1, "python", "train.py", variables=variables(1), cwd=work, forked=True)
    survey = look(proc)
    assert (survey.jobs, [process.pid for process in survey.left]) == ((), [111, 121])
    with pytest.raises(JobError, match="no rank runs there any more"):
        named_job(survey, str(work), here=Path("/"), proc_root=proc.root)


def chosen(proc: FakeProc, name: str | Path, rank: int) -> int:
    job = named_job(look(proc), str(name), here=Path("/"), proc_root=proc.root)
    (process,) = chosen_ranks(job, [rank], str(name), here=Path("/"))
    return process.pid


def test_a_program_that_a_dead_rank_has_started_is_hit_by_its_own_pid_alone(proc: FakeProc, work: Path) -> None:
    """Its session was the rank's, and init is its parent."""
    proc.add(111, 1, "python", "helper.py", session=110, variables=variables(0), cwd=work, trains=True)
    with pytest.raises(JobError, match=r"(?s)this may be the rank.*PID 111.*leader of its session"):
        chosen(proc, work, 0)
    with pytest.raises(JobError, match=r"(?s)a rank may run there.*PID 111"):
        watchable_job(look(proc), str(work), here=Path("/"))
    assert chosen(proc, "111", 0) == 111
    assert watchable_job(look(proc), "111", here=Path("/")).ranks[0].pid == 111


def test_ranks_whose_shell_has_ended_are_told_by_the_session_that_they_share(proc: FakeProc, work: Path) -> None:
    for rank in range(2):
        proc.add(110 + rank, 1, "python", "t.py", session=50, variables=variables(rank), cwd=work, trains=True)
    assert chosen(proc, work, 1) == 111


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_program_beside_the_ranks_is_none_of_them(proc: FakeProc, work: Path, ranks: int) -> None:
    """The start script has exported RANK_ID for each, the last one's is the monitor's too."""
    proc.add(100, 1, "bash", "start.sh", comm="bash", variables={}, cwd=work)
    for rank in range(ranks):
        own = variables(rank)
        proc.add(110 + rank, 100, "python", "-u", "t.py", session=100, variables=own, cwd=work, trains=True)
    last = ranks - 1
    own = variables(last)
    proc.add(120, 100, "python", "-X", "dev", "monitor.py", session=100, variables=own, cwd=work, trains=True)
    assert chosen(proc, work, last) == 110 + last
    shutil.rmtree(proc.root / str(110 + last))
    with pytest.raises(JobError, match=r"(?s)PID 120.*it runs monitor.py.*run t.py"):
        chosen(proc, work, last)
    if ranks == 3:
        assert chosen(proc, work, 0) == 110


def test_a_program_of_a_shell_is_a_rank_once_it_has_loaded_mindspore(proc: FakeProc, work: Path) -> None:
    proc.add(100, 1, "bash", "start.sh", comm="bash", variables={}, cwd=work)
    proc.add(110, 100, "python", "t.py", session=100, variables=variables(0), cwd=work)
    with pytest.raises(JobError, match=r"(?s)this may be the rank.*has not loaded MindSpore"):
        chosen(proc, work, 0)
    shutil.rmtree(proc.root / "110")
    proc.add(110, 100, "python", "t.py", session=100, variables=variables(0), cwd=work, trains=True)
    assert chosen(proc, work, 0) == 110


def add_shell(proc: FakeProc, base: int, work: Path, port: int, trains: bool) -> None:
    """Two ranks of a shell."""
    proc.add(base, 1, "bash", "start.sh", comm="bash", variables={}, cwd=work)
    for rank in range(2):
        log = work / "logs" / f"{base}_{rank}.log"
        own = variables(rank, port=port)
        pid = base + 10 + rank
        proc.add(pid, base, "python", "t.py", session=base, variables=own, cwd=work, log=log, trains=trains)


def test_a_job_that_was_just_started_counts_beside_one_that_trains(proc: FakeProc, work: Path) -> None:
    add_shell(proc, 100, work, 8118, trains=True)
    add_shell(proc, 200, work, 9000, trains=False)
    with pytest.raises(JobError, match=r"(?s)2 jobs run there.*--job 110 names.*--job 210 names"):
        chosen(proc, work, 0)
    assert chosen(proc, "110", 0) == 110


def test_a_rank_that_was_just_started_again_counts_beside_the_old_one(proc: FakeProc, work: Path) -> None:
    add_shell(proc, 100, work, 8118, trains=True)
    proc.add(120, 100, "python", "t.py", session=100, variables=variables(0), cwd=work)
    with pytest.raises(JobError, match=r"(?s)the same rank runs twice.*PID 110.*PID 120"):
        chosen(proc, work, 0)
    assert (chosen(proc, "110", 0), chosen(proc, "120", 0)) == (110, 120)


@pytest.mark.parametrize("left", [False, True], ids=["just started", "left"])
def test_a_scheduler_that_was_left_is_not_taken_instead_of_doubtful_ranks(
    proc: FakeProc, work: Path, left: bool
) -> None:
    proc.add(90, 1, "python", "t.py", variables=SCHEDULER, cwd=work, log=work / "logs" / "s.log")
    add_shell(proc, 100, work, 9000, trains=False)
    if left:
        shutil.rmtree(proc.root / "100")
        shutil.rmtree(proc.root / "110")
    with pytest.raises(JobError, match=r"(?s)2 jobs run there; name one by its log directory or a PID.*--job 90 names"):
        chosen(proc, work, 1)
    assert chosen(proc, "111", 1) == 111


def test_a_rank_that_has_put_itself_into_the_background_is_hit_by_its_own_pid_alone(proc: FakeProc, work: Path) -> None:
    """It has forked twice, and executed nothing: only its PID tells it from a data worker of a rank that has died."""
    proc.add(110, 1, "python", "t.py", session=109, variables=variables(0), cwd=work, forked=True, trains=True)
    proc.add(111, 110, "python", "t.py", session=109, variables=variables(0), cwd=work, forked=True, trains=True)
    with pytest.raises(
        JobError, match=r"(?s)no rank runs there any more.*PID 111.*its PID as --job:\n  rank 0: PID 110"
    ):
        chosen(proc, work, 0)
    with pytest.raises(JobError, match=r"--rank 1: not among"):
        chosen(proc, "110", 1)
    (process,) = watchable_job(look(proc), "110", here=Path("/")).ranks
    assert (process.pid, process.doubt.partition(":")[0]) == (110, "it was forked and has executed no program since")
    assert chosen(proc, "110", 0) == 110
    with pytest.raises(JobError, match="no rank runs there any more"):
        chosen(proc, "111", 0)  # its data worker


@pytest.mark.parametrize("proof", ["a session that lives", "several", "its rank runs", "a helper"])
def test_a_fork_that_is_proved_to_be_left_is_not_even_hit_by_its_own_pid(
    proc: FakeProc, work: Path, proof: str
) -> None:
    program = ("-c", "from multiprocessing.spawn import spawn_main") if proof == "a helper" else ("t.py",)
    proc.add(110, 1, "python", *program, session=109, variables=variables(0), cwd=work, forked=True, trains=True)
    if proof == "a session that lives":
        proc.add(109, 1, "bash", "start.sh", comm="bash", variables={}, cwd=work)
    if proof == "several":
        proc.add(111, 1, "python", "t.py", session=109, variables=variables(0), cwd=work, forked=True, trains=True)
    if proof == "its rank runs":
        proc.add(120, 1, "python", "t.py", variables=variables(0), cwd=work, trains=True)
    with pytest.raises(JobError, match="no rank runs there any more"):
        chosen(proc, "110", 0)


def test_a_launcher_that_may_start_its_ranks_again_is_meant_rather_than_what_they_have_left(
    proc: FakeProc, work: Path
) -> None:
    add_msrun(proc, 100, work)
    for rank in (110, 120):
        shutil.rmtree(proc.root / str(rank))
    proc.add(115, 1, "python", "helper.py", session=110, variables=variables(0), cwd=work)
    job = watchable_job(look(proc), str(work), here=Path("/"))
    assert found(job) == [("launcher", None, 100), ("scheduler", None, 101)]
