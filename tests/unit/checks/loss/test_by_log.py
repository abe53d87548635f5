"""Ranks of which no agent has recorded steps are judged by their own logs, as exactly as those are printed.

In these runs only the victim, rank 2, has an agent that sees steps.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chaos.checks.judge import Judgement
from tests.kit.runs.good_run import LAST, SAVED, VICTIM, GoodRun, loss_after
from tests.unit.checks.judging import Judge, said

SILENT = (0, 1, 3)
STEPS = ("step.begin", "step.end", "digest")
Lines = dict[tuple[str, int], list[str]]
LOSSES = "every loss in the ranks' logs equals the fault-free run's"


def line(step: int, loss: str) -> str:
    at = f"2026-11-21 05:00:{step:02d},000"
    return (
        f"{at} - [mindformers/core/callback/callback.py:529] - INFO - {{ Epoch:[  1/  1], step:[{step:5d}/   12], "
        f"loss: {loss}, per_step_time: 100ms, lr: 1e-05"
    )


def lines_of(rank: int, first: int, last: int) -> list[str]:
    return [line(step, f"{loss_after(rank, step):.6f}") for step in range(first, last + 1)]


def logs_of_a_good_run() -> Lines:
    logs = {("train", rank): lines_of(rank, 1, SAVED + 1) for rank in SILENT}
    logs |= {("resume", rank): lines_of(rank, SAVED + 1, LAST) for rank in SILENT}
    return logs | {("baseline", rank): lines_of(rank, 1, LAST) for rank in SILENT}


def silenced(run: GoodRun, logs: Lines) -> GoodRun:
    """The run without the steps that its agents recorded, but for the victim's, and with these logs."""
    assert run.baseline is not None
    for files in (run.files, run.baseline):
        for name, records in files.items():
            files[name] = [record for record in records if record["event"] not in STEPS or record["rank"] == VICTIM]
    for (attempt, rank), lines in logs.items():
        place = "baseline/logs/train" if attempt == "baseline" else f"logs/{attempt}"
        run.others[f"{place}/worker_{rank}.log"] = "".join(f"{text}\n" for text in lines).encode()
    return run


def seen(judgement: Judgement, check: str, verdict: str) -> str:
    return "\n".join(
        f"{finding.expected}: {finding.seen}"
        for finding in judgement.findings
        if (finding.check, finding.verdict) == (check, verdict)
    )


def test_a_good_run_is_judged_by_its_logs(run: GoodRun, judged: Judge) -> None:
    judgement = judged(silenced(run, logs_of_a_good_run()))
    assert [finding for finding in judgement.findings if finding.verdict == "fail"] == []
    (equal,) = said(judgement, "loss", "pass", LOSSES)
    assert "36 losses of 3 ranks are equal, by the ranks' logs, exact to 6 digits after the point" in equal.seen
    assert said(judgement, "loss", "pass", "every loss that is recorded is finite")
    assert said(judgement, "resume", "pass", "training goes on at step 6")
    assert said(judgement, "resume", "pass", "3 of them by their logs")
    assert judgement.verdict == "unknown"  # weights, gradients and batches are in no log


def test_without_logs_nothing_passes(run: GoodRun, judged: Judge) -> None:
    judgement = judged(silenced(run, {}))
    assert said(judgement, "loss", "pass", "fault-free") == []
    assert judgement.verdict != "pass"


def changed(attempt: str, rank: int, index: int, *to: str) -> Callable[[Lines], None]:
    def change(logs: Lines) -> None:
        logs[attempt, rank][index : index + 1] = to

    return change


@pytest.mark.parametrize(
    ("change", "check", "verdict", "text"),
    [
        (changed("resume", 3, 2, line(8, "0.285557")), "loss", "fail", "first at rank 3, step 8: loss 0.285557"),
        (changed("resume", 0, 0, line(6, "nan")), "loss", "fail", "rank 0 prints loss nan at step 6"),
        (changed("train", 1, 2, line(3, "0.585001")), "loss", "unknown", "before any fault"),
        (changed("resume", 3, 2), "loss", "unknown", "for step 8 (1 in all)"),
        (changed("baseline", 3, 7), "loss", "unknown", "for step 8 (1 in all)"),
        (changed("resume", 3, 2), "resume", "unknown", "for step 8"),
        (changed("resume", 3, 6), "resume", "unknown", "the log of rank 3 ends with step 11"),
        (
            changed("resume", 3, 0, line(5, "0.413333"), line(6, "0.358571")),
            "resume",
            "fail",
            "rank 3 began with step 5",
        ),
        (changed("resume", 3, 0), "resume", "unknown", "first step in the log of rank 3 is 7"),
        (
            changed("resume", 1, 3, line(8, "0.265556"), line(9, "0.240000")),
            "resume",
            "fail",
            "rank 1 trained step 8 again",
        ),
        (changed("train", 0, 0), "resume", "unknown", "first step in the log of rank 0 is 2"),
        (changed("resume", 0, 6, line(12, "0.176923"), line(13, "0.1")), "resume", "fail", "rank 0 trained step 13"),
    ],
)
def test_what_the_logs_show(
    run: GoodRun, judged: Judge, change: Callable[[Lines], None], check: str, verdict: str, text: str
) -> None:
    logs = logs_of_a_good_run()
    change(logs)
    judgement = judged(silenced(run, logs))
    assert text in seen(judgement, check, verdict)


def test_a_rank_without_a_log_is_not_known(run: GoodRun, judged: Judge) -> None:
    logs = {key: lines for key, lines in logs_of_a_good_run().items() if key != ("resume", 3)}
    judgement = judged(silenced(run, logs))
    assert "the log of rank 3 has no step" in seen(judgement, "resume", "unknown")
    assert said(judgement, "loss", "pass", LOSSES) == []


def test_fewer_digits_are_compared_as_far_as_they_go(run: GoodRun, judged: Judge) -> None:
    logs = logs_of_a_good_run()
    for rank in SILENT:
        logs["baseline", rank] = [line(step, f"{loss_after(rank, step):.3f}") for step in range(1, LAST + 1)]
    judgement = judged(silenced(run, logs))
    (passed,) = said(judgement, "loss", "pass", LOSSES)
    assert passed.by_log and "exact to 3 digits after the point" in passed.seen
    logs["resume", 3][2] = line(8, f"{loss_after(3, 8) + 0.001:.6f}")
    judgement = judged(silenced(run, logs))
    assert said(judgement, "loss", "fail", "first at rank 3, step 8")


def test_ranks_that_print_the_same_must_go_on_doing_so(run: GoodRun, judged: Judge) -> None:
    logs = logs_of_a_good_run()
    for attempt in ("train", "resume", "baseline"):
        logs[attempt, 3] = list(logs[attempt, 1])
    judgement = judged(silenced(run, logs))
    assert said(judgement, "consistency", "pass", "12 comparisons, all equal")
    logs["resume", 3][2] = line(8, "0.285557")
    judgement = judged(silenced(run, logs))
    assert "ranks 1 and 3 print 0.265556 and 0.285557 at step 8" in seen(judgement, "consistency", "fail")


def test_a_log_that_steps_are_printed_in_now_and_then_is_enough(run: GoodRun, judged: Judge) -> None:
    logs = {
        key: [text for text in lines if "0/   12]" in text or "2/   12]" in text]
        for key, lines in logs_of_a_good_run().items()
    }
    judgement = judged(silenced(run, logs))
    (equal,) = said(judgement, "loss", "pass", LOSSES)
    assert equal.seen.startswith("9 losses of 3 ranks are equal")


def test_what_an_agent_recorded_wins(run: GoodRun, judged: Judge) -> None:
    for rank in range(4):
        run.others[f"logs/resume/worker_{rank}.log"] = f"{line(6, '9.999999')}\n".encode()
    judgement = judged(run)
    assert judgement.verdict == "pass"


def test_a_training_that_is_too_long_for_memory_is_not_judged(run: GoodRun, judged: Judge) -> None:
    silenced(run, logs_of_a_good_run()).replan(last_step=10**12)
    judgement = judged(run)
    assert "is too long to be judged by logs" in seen(judgement, "loss", "unknown")
    assert judgement.verdict == "unknown"
