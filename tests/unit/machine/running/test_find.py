"""All processes of a run are found, none of another run, and a rank is not taken for its launcher or its helpers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.machine.job.processes import FoundProcess, find_run_processes, runs_alive
from chaos.machine.linux.process import identify, send_signal, wait_ended
from chaos.machine.linux.procfs import command_line
from tests.unit.machine.fake_proc import FakeProc

Start = Callable[..., "subprocess.Popen[bytes]"]
Found = Callable[[int], list[FoundProcess]]


def test_only_processes_with_exactly_this_run_are_found(start: Start, token: str, found: Found) -> None:
    mine = start("sleep", "1000", run=token)
    start("sleep", "1000", run=token + "x")
    start("sleep", "1000", run=token[:-1])
    start("sleep", "1000", OTHER=token)
    start("sleep", "1000", XCHAOS_RUN=token)
    (process,) = found(1)
    assert process.identity == identify(mine.pid)
    assert process.cmdline == ("sleep", "1000")
    assert {token, token + "x", token[:-1]} <= runs_alive()


def test_an_empty_run_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be empty"):
        find_run_processes("")


def test_descendants_that_dropped_the_environment_are_found(start: Start, token: str, found: Found) -> None:
    top = start("sh", "-c", "env -i sh -c 'setsid sleep 1000 & wait' & wait", run=token)
    pids = {process.pid for process in found(3)}
    assert top.pid in pids


def test_a_descendant_that_belongs_to_another_run_is_left_out(
    start: Start, token: str, other_token: str, found: Found
) -> None:
    start("sh", "-c", f"CHAOS_RUN={other_token} sh -c 'env -i sleep 1000 & wait' & wait", run=token)
    wait_for("the other run", lambda: len(find_run_processes(other_token)) == 2, seconds=60)
    (process,) = found(1)
    assert process.cmdline[0] == "sh"


def test_a_process_found_before_stays_the_runs_when_its_parent_has_died(start: Start, token: str, found: Found) -> None:
    parent = start("sh", "-c", "env -i sleep 1000 & wait", run=token)
    (orphan,) = [process for process in found(2) if process.pid != parent.pid]
    parent.kill()
    wait_ended([identify(parent.pid)], 20, SYSTEM_CLOCK)
    assert find_run_processes(token) == []
    (still,) = find_run_processes(token, known=[orphan.identity])
    assert still.identity == orphan.identity
    send_signal(orphan.identity, signal.SIGKILL)


def test_this_process_is_never_found(token: str) -> None:
    code = (
        "import sys; from chaos.machine.job.processes import find_run_processes, runs_alive; "
        "print(find_run_processes(sys.argv[1]), sys.argv[1] in runs_alive())"
    )
    environment = {**os.environ, "CHAOS_RUN": token}
    ran = subprocess.run(
        [sys.executable, "-c", code, token], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "[] False\n"


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


WORKER = {"CHAOS_RUN": "r1", "CHAOS_ATTEMPT": "train", "MS_ROLE": "MS_WORKER"}


def add_msrun_job(proc: FakeProc) -> None:
    proc.add(10, 1, "python", "/venv/bin/msrun", "train.py", variables={"CHAOS_RUN": "r1", "RANK_ID": "0"})
    proc.add(
        11, 10, "python", "train.py", session=10, variables={"CHAOS_RUN": "r1", "MS_ROLE": "MS_SCHED", "RANK_ID": "0"}
    )
    for rank in range(3):
        proc.add(
            20 + rank, 10, "python", "train.py", variables={**WORKER, "MS_NODE_ID": str(rank), "RANK_ID": str(rank)}
        )


def test_the_launcher_of_plain_ranks_is_known_too(proc: FakeProc) -> None:
    proc.add(10, 1, "python", "/chaos/rehearsal/plain/plainrun.py", "4", variables={"CHAOS_RUN": "r1", "RANK_ID": "0"})
    assert proc.roles() == {10: ("launcher", None)}


def test_roles_and_ranks_of_an_msrun_job(proc: FakeProc) -> None:
    add_msrun_job(proc)
    assert proc.roles() == {
        10: ("launcher", None),
        11: ("scheduler", None),
        20: ("rank", 0),
        21: ("rank", 1),
        22: ("rank", 2),
    }
    assert {process.attempt for process in find_run_processes("r1", proc_root=proc.root)} == {None, "train"}


def test_what_inherits_a_ranks_environment_is_not_that_rank(proc: FakeProc) -> None:
    add_msrun_job(proc)
    proc.add(30, 21, "gcc", session=21, variables={**WORKER, "MS_NODE_ID": "1"})
    proc.add(31, 30, "cc1", session=21, variables={**WORKER, "MS_NODE_ID": "1"})
    proc.add(32, 21, "daemon", session=32, variables={**WORKER, "MS_NODE_ID": "1"})
    proc.add(33, 10, "/usr/bin/tail", "-f", "worker_2.log", session=10, variables={**WORKER, "MS_NODE_ID": "2"})
    proc.add(34, 1, "orphan of rank 7", session=27, variables={**WORKER, "MS_NODE_ID": "7"})
    proc.add(35, 10, "python", "/venv/bin/msrun", session=35, variables={"CHAOS_RUN": "r1"})
    roles = proc.roles()
    assert [roles[pid] for pid in range(30, 36)] == [("other", None)] * 6
    assert [roles[pid] for pid in (20, 21, 22)] == [("rank", 0), ("rank", 1), ("rank", 2)]


def test_ranks_of_a_launcher_that_gives_them_no_session_are_found(proc: FakeProc) -> None:
    proc.add(10, 1, "python", "launch.py", variables={"CHAOS_RUN": "r1"})
    for rank in range(2):
        proc.add(20 + rank, 10, "python", "train.py", session=10, variables={"CHAOS_RUN": "r1", "RANK_ID": str(rank)})
        proc.add(30 + rank, 20 + rank, "helper", session=10, variables={"CHAOS_RUN": "r1", "RANK_ID": str(rank)})
    other = ("other", None)
    assert proc.roles() == {10: other, 20: ("rank", 0), 21: ("rank", 1), 30: other, 31: other}


@pytest.mark.parametrize("number", ["", "-1", "x", "²"])
def test_a_worker_without_a_proper_number_has_no_rank(proc: FakeProc, number: str) -> None:
    proc.add(20, 1, "python", variables={**WORKER, "MS_NODE_ID": number})
    assert proc.roles() == {20: ("other", None)}


def test_a_process_that_executes_another_program_is_described_by_one_of_the_two(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.add(20, 1, "bash", "run.sh", variables={**WORKER, "MS_NODE_ID": "0"})

    def executing(pid: int, proc_root: Path) -> tuple[str, ...]:
        (proc_root / str(pid) / "cmdline").write_text("sleep\x001000\0")
        (proc_root / str(pid) / "environ").write_text("HOME=/root\0")
        return command_line(pid, proc_root)

    monkeypatch.setattr("chaos.machine.job.processes.command_line", executing)
    (process,) = find_run_processes("r1", proc_root=proc.root)
    assert (process.cmdline, process.attempt, process.role, process.rank) == (("sleep", "1000"), None, "other", None)


def test_zombies_are_not_processes_of_the_run(proc: FakeProc) -> None:
    proc.add(20, 1, "python", state="Z", variables={**WORKER, "MS_NODE_ID": "0"})
    assert proc.roles() == {}


def test_a_ring_of_parents_ends(proc: FakeProc) -> None:
    proc.add(20, 21, "python", session=9, variables={**WORKER, "MS_NODE_ID": "0"})
    proc.add(21, 20, "python", session=9, variables={**WORKER, "MS_NODE_ID": "1"})
    assert set(proc.roles()) == {20, 21}


def test_an_unreadable_process_is_passed_over(proc: FakeProc) -> None:
    proc.add(20, 1, "python", variables={**WORKER, "MS_NODE_ID": "0"})
    proc.add(40, 1, "other user", variables={})
    (proc.root / "40" / "environ").unlink()
    (proc.root / "41").mkdir()
    assert proc.roles() == {20: ("rank", 0)}
