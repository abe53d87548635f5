"""A kill that misses is never taken for one that hit: the verdict is unknown, and the job goes on to its end."""

from __future__ import annotations

import pytest

from tests.rehearsal.kit import SCENARIOS, Chaos, checks_of, said

DEADLINES = SCENARIOS / "deadlines.yaml"
RANKS = range(4)

PATCH = """
import signal
from chaos.faults.signals.kill import Kill

def rank(job, number):
    return next(one.identity for one in job.processes() if one.role == "rank" and one.rank == number)

def inject(self, job, victim):
    {act}

Kill.inject = inject
"""

NOTHING = "pass"
WEAKER_SIGNAL = "job.signal(victim.identity, signal.SIGCONT)"
ANOTHER_SIGNAL = "job.signal(victim.identity, signal.SIGABRT)"
ANOTHER_RANK = "job.signal(rank(job, 3), signal.SIGKILL)"


@pytest.mark.parametrize("act", [pytest.param(NOTHING, marks=pytest.mark.nightly), WEAKER_SIGNAL])
def test_a_rank_that_is_not_hit_is_let_go_and_the_job_ends_by_itself(chaos: Chaos, act: str) -> None:
    done = chaos.run(DEADLINES, "--set", "job=plain", "--set", "land=2s", patch=PATCH.format(act=act))
    run, unknown = done.run, checks_of(done.run.result, "unknown")
    assert (done.code, run.result["verdict"]) == (2, "unknown")
    message = said([check for check in unknown if check["name"] == "injection"])
    assert "the fault missed: deadline 'evidence of fault hit' of 2 s has expired" in message
    assert run.result["faults"][0]["evidence"] == []
    (reached,), (released,) = (run.history.select(f"barrier.{what}", rank=2) for what in ("reached", "released"))
    assert released.mono - reached.mono >= 2_000_000_000
    for rank in RANKS:
        assert [event.data["step"] for event in run.history.select("step.end", rank=rank)] == list(range(1, 13))
        (exited,) = run.history.select("rank.exit", rank=rank)
        assert exited.data["code"] == 0
    assert run.left() == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (ANOTHER_RANK, "deadline 'evidence of fault hit' of 2 s has expired"),
        (ANOTHER_SIGNAL, "rank 2 ended with signal 6, not with signal 9"),
    ],
)
def test_a_recovery_from_another_fault_is_not_taken_for_the_planned_one(chaos: Chaos, act: str, reason: str) -> None:
    done = chaos.run(DEADLINES, "--set", "land=2s", patch=PATCH.format(act=act))
    run = done.run
    assert (done.code, run.result["verdict"]) == (2, "unknown"), said(checks_of(run.result, "fail"))
    message = said([check for check in checks_of(run.result, "unknown") if check["name"] == "injection"])
    assert reason in message
    assert run.result["faults"][0]["evidence"] == []
    # The job did recover: without the evidence that would have been a pass.
    assert run.history.first("train.end", attempt="resume") is not None
    assert run.left() == []


def test_a_trigger_that_never_holds_is_missed_at_its_deadline(chaos: Chaos) -> None:
    done = chaos.run(SCENARIOS / "never-fires.yaml")
    unknown = checks_of(done.run.result, "unknown")
    assert (done.code, done.run.result["verdict"]) == (2, "unknown")
    waited = "step 5 step.begin of rank 2, a log line with 'no rank ever logs this'"
    assert f"fault kill waits for {waited}" in said([check for check in unknown if check["name"] == "run"])
    assert f"the fault still waited for {waited}" in said([check for check in unknown if check["name"] == "injection"])
    assert done.run.history.select("fault.injecting") == []
    assert done.run.left() == []
