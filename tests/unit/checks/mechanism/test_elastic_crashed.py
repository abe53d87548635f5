"""Where torchrun ends the job after a fault, a crash of another rank is no sound end, nor is torchrun's code 0."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.collect import Collector
from chaos.mechanisms.elastic.crashed import judge_crashed
from chaos.plan.model import Plan
from tests.kit.plans import changed
from tests.unit.checks.mechanism.test_elastic_nodes import LOST, lost
from tests.unit.checks.mechanism.test_elastic_rule import PLAN
from tests.unit.checks.mechanism.test_rsc_rule import Story

CRASH = "rank 1: ended by SIGSEGV"


def judged(tmp_path: Path, signal: int | None, code: int | None, *, log: str = "", plan: Plan = LOST) -> list[str]:
    """Return the verdicts and texts about the ranks of a job that is ended, whose rank 1 no fault hit."""
    story = lost(tmp_path, log=log)
    story.drop("launcher.exit")
    for rank in range(4):
        its = {"signal": signal, "code": code} if rank == 1 else {"signal": 11 if rank > 1 else 15, "code": None}
        story.add(30, "rank.exit", rank, 100 + rank, **its, node=rank // 2)
    return found(story, tmp_path, plan)


def found(story: Story, tmp_path: Path, plan: Plan = LOST) -> list[str]:
    collector = Collector("mechanism")
    judge_crashed(plan, story.history(), Artifacts(tmp_path, None), collector)
    return [f"{finding.verdict}: {finding.seen}" for finding in collector.findings()]


def test_a_crash_of_a_rank_that_no_fault_hit_fails(tmp_path: Path) -> None:
    assert judged(tmp_path, 11, None) == [f"fail: {CRASH}, which neither torchrun nor an error of a collective does"]


def test_a_crash_behind_torchruns_sigterm_is_unknown(tmp_path: Path) -> None:
    prefix = "W1128 16:32:21.880000 50 torch/distributed/elastic/multiprocessing/api.py:1028]"
    log = f"{prefix} Sending process 101 closing signal SIGTERM"
    why = f"unknown: {CRASH} after torchrun's SIGTERM, and nothing shows why"
    assert judged(tmp_path, 11, None, log=log) == [why]


@pytest.mark.parametrize(("signal", "code"), [(15, None), (9, None), (6, None), (None, 1), (None, 7)])
def test_an_end_by_torchrun_or_by_an_error_passes(tmp_path: Path, signal: int | None, code: int | None) -> None:
    assert judged(tmp_path, signal, code) == ["pass: none of 2 does"]


def test_a_job_that_trains_to_its_end_or_of_another_launcher_is_not_judged(tmp_path: Path) -> None:
    assert judged(tmp_path, 11, None, plan=PLAN) == []
    story = lost(tmp_path)
    story.add(30, "rank.exit", 1, 101, signal=11, code=None, node=0)
    for name in ("msrun.log", "msrun-node_1.log"):
        (tmp_path / "logs" / "train" / name).write_text("the launcher of another framework\n")
    assert found(story, tmp_path) == []


@pytest.mark.parametrize(
    ("how", "statement"),
    [
        ({"code": 1}, "pass: exit code 1"),
        ({"code": None, "signal": 15}, "pass: ended by SIGTERM"),
        ({"code": 0}, "fail: torchrun: exit code 0"),
    ],
)
def test_torchrun_does_not_end_well_where_it_ends_the_job(
    tmp_path: Path, how: dict[str, int | None], statement: str
) -> None:
    story = lost(tmp_path, **how)  # type: ignore[arg-type]
    assert found(story, tmp_path) == [], "no rank has failed for it"
    story.add(30, "rank.exit", 0, 100, signal=15, code=None, node=0)
    assert statement in found(story, tmp_path)
    assert found(story, tmp_path, PLAN) == [], "here it trains to the end"


def test_a_supervisor_of_the_jobs_own_may_end_well(tmp_path: Path) -> None:
    story = lost(tmp_path, code=0)
    story.add(30, "rank.exit", 3, 103, signal=9, code=None, node=1)
    story.add(30, "rank.exit", 2, 102, signal=9, code=None, node=0)
    assert found(story, tmp_path) == ["fail: torchrun: exit code 0"]
    assert found(story, tmp_path, changed(LOST, strategies=("recover",))) == [], "a cluster's agent has its own code"
    story.add(20, "attempt.start", by="the job's own supervisor")
    story.events[-1] = replace(story.events[-1], attempt="resume")
    assert found(story, tmp_path) == []


def test_a_script_around_torchrun_may_end_well(tmp_path: Path) -> None:
    story = lost(tmp_path, code=0)
    story.add(30, "rank.exit", 0, 100, signal=15, code=None, node=0)
    assert "fail: torchrun: exit code 0" in found(story, tmp_path)
    story.events = [replace(event, pid=49) if event.event == "launcher.exit" else event for event in story.events]
    assert found(story, tmp_path) == ["pass: none of 1 does"]
