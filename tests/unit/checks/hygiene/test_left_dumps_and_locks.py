"""A dump, a lock or half a file that no fault of the plan explains is dirt, and what cannot be judged is listed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.checks.hygiene.leftovers import judge_leftovers
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.evidence.finding import Finding
from chaos.history.reader import History, read_history
from tests.kit.runs.good_run import VICTIM, GoodRun, good_run, pid_of
from tests.unit.checks.judging import Judge, not_passed, said

CORE = b"\x7fELF\x02\x01\x01" + bytes(9) + (4).to_bytes(2, "little") + bytes(8)
RESUMED = pid_of("resume", 1)
KILLED = pid_of("train", VICTIM)


def ends_by_segfault(run: GoodRun) -> None:
    run.replan(faults=tuple(replace(fault, kind="segfault") for fault in run.plan.faults))


def findings(run: GoodRun, directory: Path) -> list[Finding]:
    written = run.write(directory)
    found = Collector("hygiene")
    judge_leftovers(run.plan, read_history(written / "history"), Artifacts(written, None), found)
    return found.findings()


@pytest.mark.parametrize(
    ("name", "content", "segfault"),
    [
        ("checkpoints/readme", b"core", False),
        ("core", b"a model", False),
        ("core", CORE, True),
        (f"core.{KILLED}", CORE, True),
        ("train.lock", b"", False),
        ("train.lock", b"999999", False),
        ("train.lock", f"{KILLED}\n".encode(), False),
    ],
)
def test_what_a_fault_explains_or_nobody_owns_is_no_dirt(
    tmp_path: Path, name: str, content: bytes, segfault: bool
) -> None:
    run = good_run()
    run.others[f"job/{name}"] = content
    if segfault:
        ends_by_segfault(run)
    assert [finding.verdict for finding in findings(run, tmp_path)] == ["pass"]


@pytest.mark.parametrize(
    ("name", "content", "segfault", "words"),
    [
        ("core", CORE, False, "a process has left a memory dump in job/core"),
        (f"rank_1/core.{KILLED}", CORE, False, f"has left a memory dump in job/rank_1/core.{KILLED}"),
        (f"core.{RESUMED}", CORE, True, f"has left a memory dump in job/core.{RESUMED}"),
        ("train.lock", f"{RESUMED}".encode(), False, f"holds the id of process {RESUMED}, which ended normally"),
    ],
)
def test_what_nothing_explains_fails_with_its_path(
    tmp_path: Path, name: str, content: bytes, segfault: bool, words: str
) -> None:
    run = good_run()
    run.others[f"job/{name}"] = content
    if segfault:
        ends_by_segfault(run)
    (finding,) = findings(run, tmp_path)
    assert (finding.verdict, finding.where[0]) == ("fail", f"job/{name}") and words in finding.seen


@pytest.mark.parametrize("name", ["core", "checkpoints/net-1_5.ckpt.partial"])
def test_a_run_that_leaves_a_dump_or_half_a_file_fails(judged: Judge, name: str) -> None:
    run = good_run()
    run.others[f"job/{name}"] = CORE
    judgement = judged(run)
    assert judgement.verdict == "fail" and said(judgement, "hygiene", "fail", f"job/{name}")


def test_of_a_job_whose_directories_are_not_there_nothing_is_said(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path, None)
    found = Collector("hygiene")
    judge_leftovers(good_run().plan, History(()), artifacts, found)
    assert found.findings() == []


def test_what_cannot_be_judged_is_listed(judged: Judge) -> None:
    judgement = judged(good_run())
    assert not_passed(judgement) == []
    (left,) = [exclusion for exclusion in judgement.not_checked if exclusion.check == "hygiene"]
    assert "/dev/shm" in left.what and "averages of weights" in left.what
