"""Check ``resume``: training goes on at the step after the saved one, with the saved state and the right data."""

from __future__ import annotations

from chaos.checks.loss import by_log
from chaos.checks.resume.apart import judge_apart, judge_damaged
from chaos.checks.resume.batches import judge_batches
from chaos.checks.resume.damage_met import judge_met
from chaos.checks.resume.other_step import judge_other_step
from chaos.checks.resume.rejoined import judge_rejoined
from chaos.checks.resume.replay import judge_replay
from chaos.checks.resume.restored import judge_loads
from chaos.checks.resume.sequences import judge_sequences
from chaos.checks.run.events import NOT_RESTARTED
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.baseline import Baseline
from chaos.evidence.checkpoints.periodic import judge_hopeless, judge_refusal, resumed_from, why_unknown
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, by_rank, processes, ranks_text, step_of
from chaos.evidence.finding import Finding
from chaos.evidence.logged import Logged, logged
from chaos.evidence.recovery_windows import goes_on, reaches_the_end, rejoining, trains_to_the_end
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.plan.model import Plan

NAME = "resume"


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge steps, loaded state and batches of the resumed training."""
    collector = Collector(NAME)
    logs = logged(plan, history, artifacts)
    if rejoining(plan):
        judge_rejoined(plan, history, collector)
        return collector.findings()
    if goes_on(plan):
        judge_replay(plan, history, artifacts, Baseline(plan, history, artifacts), logs, collector)
    if trains_to_the_end(plan):
        return collector.findings()
    if not plan.resume.resumes:
        if plan.resume.restore is not None:
            judge_hopeless(plan, history, artifacts, collector)
            judge_refusal(plan, history, artifacts, collector)
            return collector.findings()
        for start in history.select("attempt.start", attempt=RESUME):
            collector.unknown("the job is not started again", "it was", start.source)
        collector.settle("the job is not started again", "it was not")
        if not goes_on(plan):
            _judge_unbroken(plan, history, Baseline(plan, history, artifacts), logs, collector)
        return collector.findings()
    if history.first("attempt.start", attempt=RESUME) is None:
        skipped = history.first("resume.skipped")
        reason = f": {skipped.data.get('reason')}" if skipped else ""
        observation = f"the history has no start of attempt resume{reason}"
        collector.unknown("the job is started again", observation, _line(plan), skipped.source if skipped else "")
        return collector.findings()
    for ended in history.select(NOT_RESTARTED):
        observation = str(ended.data.get("reason"))
        expected = "the job's own supervisor starts the ranks again"
        collector.fail(expected, observation, _line(plan), ended.source, data=about(range(plan.layout.ranks)))
        return collector.findings()
    _judge_present(plan, history, collector)
    judge_met(plan, history, artifacts, collector)
    saved = resumed_from(plan, history, artifacts)
    if saved is None:
        judge_apart(plan, history, artifacts, collector)
        judge_damaged(plan, history, artifacts, collector)
        observation, where = why_unknown(plan, history, artifacts)
        collector.unknown("the step to resume from is known", observation, *where)
        collector.close()
    else:
        _judge_first_steps(plan, history, saved, logs, collector)
        judge_loads(plan, history, artifacts, saved, collector)
    judge_other_step(plan, history, artifacts, collector)
    # Where a recovery replays steps within the faulted launch, its own part has judged them.
    judge_sequences(plan, history, logs, (RESUME,) if goes_on(plan) else (TRAIN, RESUME), collector)
    judge_batches(plan, history, Baseline(plan, history, artifacts), saved, collector)
    return collector.findings()


def _line(plan: Plan) -> str:
    return line_of(plan, "resume.step", "resume")


def _judge_present(plan: Plan, history: History, collector: Collector) -> None:
    expected = f"all {plan.layout.ranks} ranks are there again"
    present_ranks = processes(history, RESUME)
    agents = {event.rank for event in history.select("agent.start", attempt=RESUME)}
    gone = [rank for rank in range(plan.layout.ranks) if rank not in present_ranks]
    if gone:
        collector.fail(expected, f"{ranks_text(gone)} did not come back", _line(plan), data=about(gone))
    silent = [rank for rank in range(plan.layout.ranks) if rank in present_ranks and rank not in agents]
    if silent:
        collector.unknown(
            expected, f"no history of {ranks_text(silent)} in attempt resume", _line(plan), data=about(silent)
        )
    collector.settle(expected, "they are", _line(plan))


def _judge_first_steps(plan: Plan, history: History, saved: int, logs: Logged, collector: Collector) -> None:
    expected = f"training goes on at step {saved + 1}, after the saved step {saved}"
    planned = saved if plan.resume.resume_step is None else plan.resume.resume_step - 1
    if saved not in (planned, planned - planned % (plan.training.steps_per_update or 1)):
        observation = f"step {saved} was saved, so the next is step {saved + 1}"
        collector.fail(
            f"training goes on at step {plan.resume.resume_step}",
            observation,
            _line(plan),
            data=about(step=saved + 1, quantity="step", expected=plan.resume.resume_step, seen=saved + 1),
        )
    begins = by_rank(history, "step.begin", RESUME)
    for rank in range(plan.layout.ranks):
        first = next(iter(begins.get(rank, [])), None)
        if rank in logs.ranks:
            by_log.judge_first(logs.ranks[rank], saved, expected, _line(plan), collector)
        elif first is None:
            collector.unknown(
                expected,
                f"no step of rank {rank} after the resume is recorded",
                _line(plan),
                data=about(rank, step=saved + 1),
            )
        elif step_of(first) != saved + 1:
            collector.fail(
                expected,
                f"rank {rank} began with step {step_of(first)}",
                _line(plan),
                first.source,
                data=about(rank, step=step_of(first), quantity="step", expected=saved + 1, seen=step_of(first)),
            )
        start = history.first("train.begin", attempt=RESUME, rank=rank)
        initial = start.data.get("initial_step") if start else None
        restored = f"the step counter is restored to {saved}"
        if initial is None and rank not in logs.ranks:
            observation = f"the step counter of rank {rank} is not recorded"
            collector.unknown(restored, observation, _line(plan), start.source if start else "", data=about(rank))
        elif start is not None and initial not in (None, saved):
            collector.fail(
                restored,
                f"rank {rank}'s step counter was {initial}",
                _line(plan),
                start.source,
                data=about(rank, step=saved, quantity="step", expected=saved, seen=initial),
            )
    collector.settle(expected, f"it did, on every rank{_by_log(logs)}", _line(plan), by_log=bool(logs.ranks))


def _by_log(logs: Logged) -> str:
    return f", {len(logs.ranks)} of them by their logs" if logs.ranks else ""


def _judge_unbroken(plan: Plan, history: History, baseline: Baseline, logs: Logged, collector: Collector) -> None:
    """Judge a launch that nothing answers.

    A launch that nothing ends trains all steps; of a launch that is ended only the logs are judged.
    """
    if reaches_the_end(plan):
        judge_sequences(plan, history, logs, (TRAIN,), collector)
        judge_batches(plan, history, baseline, None, collector)
        return
    for log in logs.ranks.values():
        by_log.judge_sequence(log, TRAIN, (), collector)
    if logs.ranks:
        collector.settle(by_log.sequence_text(TRAIN), f"{len(logs.ranks)} ranks do", by_log=True)
