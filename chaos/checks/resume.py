"""Check ``resume``: training goes on at the step after the saved one, with the saved state and the right data."""

from __future__ import annotations

from itertools import pairwise

from chaos.checks import by_log
from chaos.checks.artifacts import Artifacts
from chaos.checks.batches import judge_batches
from chaos.checks.collect import Collector
from chaos.checks.facts import RESUME, TRAIN, by_rank, places, processes, ranks_text, step_of
from chaos.checks.finding import Finding
from chaos.checks.logged import Logged, logged
from chaos.checks.periodic import judge_hopeless, judge_refusal, resumed_from
from chaos.checks.replay import judge_replay
from chaos.checks.restored import judge_loads
from chaos.checks.spans import goes_on, trains_to_the_end
from chaos.checks.twin import Twin
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan

NAME = "resume"


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Judge steps, loaded state and batches of the resumed training."""
    found = Collector(NAME)
    logs = logged(plan, history, artifacts)
    if goes_on(plan):
        judge_replay(plan, history, Twin(plan, history, artifacts), logs, found)
    if trains_to_the_end(plan):
        return found.findings()
    if not plan.resumes:
        if plan.restore is not None:
            judge_hopeless(plan, history, artifacts, found)
            judge_refusal(history, artifacts, found)
            return found.findings()
        for start in history.select("attempt.start", attempt=RESUME):
            found.unknown("the job is not started again", "it was", start.source)
        found.settle("the job is not started again", "it was not")
        if not goes_on(plan):
            _judge_unbroken(plan, logs, found)
        return found.findings()
    if history.first("attempt.start", attempt=RESUME) is None:
        skipped = history.first("resume.skipped")
        reason = f": {skipped.data.get('reason')}" if skipped else ""
        seen = f"the history has no start of attempt resume{reason}"
        found.unknown("the job is started again", seen, _line(plan), skipped.source if skipped else "")
        return found.findings()
    _judge_present(plan, history, found)
    saved = resumed_from(plan, history, artifacts)
    if saved is None:
        files = "end-of-life checkpoints" if plan.restore is None else "periodic checkpoints that were loaded"
        found.unknown("the step to resume from is known", f"the {files} do not hold one and the same step")
        found.close()
    else:
        _judge_first_steps(plan, history, saved, logs, found)
        judge_loads(plan, history, artifacts, saved, found)
    _judge_sequences(plan, history, logs, found)
    judge_batches(plan, history, Twin(plan, history, artifacts), saved, found)
    return found.findings()


def _line(plan: Plan) -> str:
    line = plan.lines.get("resume.step", plan.lines.get("resume"))
    return f"scenario.yaml:{line}" if line else ""


def _judge_present(plan: Plan, history: History, found: Collector) -> None:
    expected = f"all {plan.ranks} ranks are there again"
    found_ranks = processes(history, RESUME)
    agents = {one.rank for one in history.select("agent.start", attempt=RESUME)}
    gone = [rank for rank in range(plan.ranks) if rank not in found_ranks]
    if gone:
        found.fail(expected, f"{ranks_text(gone)} did not come back", _line(plan))
    silent = [rank for rank in range(plan.ranks) if rank in found_ranks and rank not in agents]
    if silent:
        found.unknown(expected, f"no history of {ranks_text(silent)} in attempt resume", _line(plan))
    found.settle(expected, "they are", _line(plan))


def _judge_first_steps(plan: Plan, history: History, saved: int, logs: Logged, found: Collector) -> None:
    expected = f"training goes on at step {saved + 1}, after the saved step {saved}"
    if plan.resume_step is not None and plan.resume_step != saved + 1:
        seen = f"step {saved} was saved, so that it is step {saved + 1}"
        found.fail(f"training goes on at step {plan.resume_step}", seen, _line(plan))
    begins = by_rank(history, "step.begin", RESUME)
    for rank in range(plan.ranks):
        first = next(iter(begins.get(rank, [])), None)
        if rank in logs.ranks:
            by_log.judge_first(logs.ranks[rank], saved, expected, _line(plan), found)
        elif first is None:
            found.unknown(expected, f"no step of rank {rank} after the resume is recorded", _line(plan))
        elif step_of(first) != saved + 1:
            found.fail(expected, f"rank {rank} began with step {step_of(first)}", _line(plan), first.source)
        start = history.first("train.begin", attempt=RESUME, rank=rank)
        initial = start.data.get("initial_step") if start else None
        restored = f"the step counter is restored to {saved}"
        if initial is None and rank not in logs.ranks:
            seen = f"the step counter of rank {rank} is not recorded"
            found.unknown(restored, seen, _line(plan), start.source if start else "")
        elif start is not None and initial not in (None, saved):
            found.fail(restored, f"rank {rank}'s step counter was {initial}", _line(plan), start.source)
    found.settle(expected, f"it did, on every rank{_by_log(logs)}", _line(plan))


def _judge_sequences(plan: Plan, history: History, logs: Logged, found: Collector) -> None:
    """In each launch every step is begun and ended once, in order; the resumed one reaches the last step."""
    expected = "each launch trains every step once and in order"
    # Where a recovery replays steps within the faulted launch, its own part has judged them.
    for attempt in (RESUME,) if goes_on(plan) else (TRAIN, RESUME):
        for event in ("step.begin", "step.end"):
            sequences = by_rank(history, event, attempt)
            for rank, events in sequences.items():
                _judge_order(rank, events, attempt, found, expected)
            _judge_start(plan, sequences, attempt, event, logs, found, expected)
        _judge_pairs(history, attempt, found, expected)
        for log in logs.ranks.values():
            by_log.judge_sequence(log, attempt, (), found)
    ends = by_rank(history, "step.end", RESUME)
    for rank in range(plan.ranks):
        if rank in logs.ranks:
            by_log.judge_reach(plan, logs.ranks[rank], RESUME, found)
            continue
        events = ends.get(rank, [])
        last = step_of(events[-1]) if events else None
        if last != plan.last_step:
            goal = f"every rank trains to step {plan.last_step}"
            text = f"rank {rank} ended no step" if last is None else f"rank {rank} stopped after step {last}"
            found.fail(goal, text, *places(events[-1:]))
    found.settle(expected, f"steps up to {plan.last_step} on {plan.ranks} ranks{_by_log(logs)}")


def _by_log(logs: Logged) -> str:
    return f", {len(logs.ranks)} of them by their logs" if logs.ranks else ""


def _judge_order(rank: int, events: list[Event], attempt: str, found: Collector, expected: str) -> None:
    for before, after in pairwise(events):
        one, two = step_of(before), step_of(after)
        if two <= one:
            seen = f"rank {rank} trained step {two} twice in attempt {attempt} (after step {one})"
            found.fail(expected, seen, after.source, before.source)
        elif two > one + 1:
            seen = f"rank {rank} skipped step {one + 1} in attempt {attempt} (step {two} after step {one})"
            found.fail(expected, seen, after.source, before.source)


def _judge_pairs(history: History, attempt: str, found: Collector, expected: str) -> None:
    """A step that is begun is ended before the next one, and its batch is trained once."""
    ends = by_rank(history, "step.end", attempt)
    for rank, begins in by_rank(history, "step.begin", attempt).items():
        ended = {step_of(one) for one in ends.get(rank, [])}
        for begin in begins[:-1]:
            if step_of(begin) not in ended:
                seen = f"rank {rank} began step {step_of(begin)} in attempt {attempt} and did not end it"
                found.fail(expected, seen, begin.source)
    for rank, trained in by_rank(history, "digest", attempt).items():
        for before, after in pairwise(trained):
            if step_of(after) <= step_of(before):
                seen = f"rank {rank} trained a batch of step {step_of(after)} twice in attempt {attempt}"
                found.fail(expected, seen, after.source, before.source)


def _judge_unbroken(plan: Plan, logs: Logged, found: Collector) -> None:
    """The steps of a launch that nothing answers, of the ranks that only their logs tell of."""
    for log in logs.ranks.values():
        by_log.judge_sequence(log, TRAIN, (), found)
        if plan.mechanism is None:
            by_log.judge_reach(plan, log, TRAIN, found)
    if logs.ranks:
        found.settle(by_log.sequence_text(TRAIN), f"{len(logs.ranks)} ranks do")


def _judge_start(
    plan: Plan,
    sequences: dict[int, list[Event]],
    attempt: str,
    event: str,
    logs: Logged,
    found: Collector,
    expected: str,
) -> None:
    if attempt != TRAIN or event != "step.begin":
        return
    for rank in range(plan.ranks):
        events = sequences.get(rank, [])
        if rank in logs.ranks:
            continue
        if not events:
            found.unknown(expected, f"no step of rank {rank} in attempt {attempt} is recorded")
        elif step_of(events[0]) != 1:
            found.fail(expected, f"rank {rank} began with step {step_of(events[0])}", events[0].source)
