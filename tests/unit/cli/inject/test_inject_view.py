"""Of many ranks ``chaos inject`` speaks as of a set; of few it names each with its PID."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.attach.outcome import Hit, Injected
from chaos.cli.inject_view import MANY, of_ranks, report, show
from chaos.faults.signals.kill import KIND
from chaos.machine.job.processes import Role
from chaos.machine.linux.process import ProcessIdentity
from chaos.machine.running.directories import Directories
from chaos.machine.running.running import JobProcess, RunningJob


def process(pid: int, rank: int | None, role: Role = "rank") -> JobProcess:
    return JobProcess(ProcessIdentity(pid, 1, "boot"), 1, pid, role, rank, ("python", "train.py"), Directories())


def ranks(number: int) -> list[JobProcess]:
    return [process(1000 + rank, rank) for rank in range(number)]


def job(processes: list[JobProcess]) -> RunningJob:
    return RunningJob(None, len(processes), (process(99, None, "launcher"), *processes))


def not_hit(number: int, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of the others when rank 2 of so many would be hit."""
    some = ranks(number)
    show(job(some), [some[2]], KIND, as_json=False)
    return capsys.readouterr().out.splitlines()[-1]


def test_few_others_are_named_with_their_pids_and_many_as_a_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert not_hit(4, capsys) == "not hit: launcher 99, rank 0 1000, rank 1 1001, rank 3 1003"
    assert not_hit(MANY + 1, capsys).endswith(f"rank {MANY} {1000 + MANY}")
    assert not_hit(128, capsys) == (
        "not hit: launcher 99, ranks 0-1,3-127 (127 in all) (--dry-run --json lists the PIDs)"
    )


def test_one_of_which_nothing_says_which_rank_it_is_keeps_its_pid(capsys: pytest.CaptureFixture[str]) -> None:
    some = [*ranks(40), process(7, None)]
    show(job(some), [some[0]], KIND, as_json=False)
    assert "launcher 99, rank not known, PID 7, ranks 1-39 (39 in all) (--dry-run" in capsys.readouterr().out


def test_the_pids_of_many_are_in_what_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    some = ranks(128)
    show(job(some), [some[2]], KIND, as_json=True)
    result = json.loads(capsys.readouterr().out)
    assert {one["pid"] for one in result["others"]} == {
        99,
        *(candidate.pid for candidate in some if candidate.rank != 2),
    }


def test_many_that_are_hit_are_a_set_in_a_question_and_in_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    some = ranks(40)
    assert of_ranks(some[:2]) == "rank 0 (PID 1000), rank 1 (PID 1001)"
    assert of_ranks(some) == "ranks 0-39 (40 in all)"
    evidence = {"signal": 9, "said_by": "the kernel"}
    hits = [Hit(one, "landed", evidence) for one in some[:-1]]
    report(Injected(Path("run"), "kill", (*hits, Hit(some[-1], "not landed", None, "it had ended")), undone=None))
    assert capsys.readouterr().out.splitlines() == [
        "not landed: kill, see run",
        "  ranks 0-38 (39 in all): landed: signal 9, says the kernel",
        "  rank 39, PID 1039: not landed: it had ended",
    ]
