"""Check ``consistency``: ranks of one replica group hold the same weights and optimizer state, step by step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from chaos.checks.consistency.accumulators import unshared_accumulators
from chaos.checks.consistency.groups import judge_groups
from chaos.checks.consistency.replicas import judge_replicas
from chaos.checks.consistency.shards import judge_shards, recorded_shards, unshared_slots
from chaos.checks.loss import by_log
from chaos.checks.scope import trains_nothing
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.checkpoints.parameters import is_replicated
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, digests, ranks_text, text_list
from chaos.evidence.finding import Finding
from chaos.evidence.logged import logged
from chaos.evidence.recovery_windows import (
    Ambiguous,
    Window,
    chains,
    reaches_the_end,
    recovery_windows,
    rejoining,
    replayed_windows,
)
from chaos.evidence.statement_data import REPLICA, about
from chaos.faults.values.plan_corruption import stays
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.recovery.mechanism import ONLINE, REPLACING, RESTARTING, ROLLING_BACK

NAME = "consistency"
_RECOVERIES = {"online repair": ONLINE, "rollback": ROLLING_BACK, "restart": RESTARTING, "replacement": REPLACING}

EXPECTED = "the ranks of each replica group hold the same weights and optimizer state"


def check(plan: Plan, history: History, artifacts: Artifacts) -> list[Finding]:
    """Compare the digests of the ranks of each replica group, at every step where several recorded them."""
    collector = Collector(NAME)
    if trains_nothing(plan) and not history.select("step.end"):
        return []
    compared, unshared = 0, unshared_accumulators(plan, history, artifacts)
    for attempt in (TRAIN, RESUME) if plan.resume.resumes else (TRAIN,):
        states, shards = dict(_states(plan, history, attempt)), recorded_shards(history, attempt)
        for group in (alike for planned in plan.layout.replica_groups for alike in shards.alike(planned)):
            if len(group) < 2:
                continue
            times = [
                _judge_state(
                    attempt,
                    moment,
                    _agreeing(plan, group, moment),
                    events,
                    unshared | unshared_slots(plan, shards, events),
                    collector,
                    _moment(plan, moment),
                )
                for moment, events in sorted(states.items())
            ]
            compared += sum(times)
            _judge_coverage(plan, attempt, group, states, collector)
    observation = f"{compared} comparisons, all equal" if compared else "no replica group has more than one rank"
    collector.settle(EXPECTED, observation)
    by_log.judge_agreement(logged(plan, history, artifacts), collector)
    judge_groups(plan, artifacts, collector)
    judge_replicas(plan, artifacts, collector)
    judge_shards(plan, history, collector)
    return collector.findings()


def _agreeing(plan: Plan, group: tuple[int, ...], step: int) -> tuple[int, ...]:
    """Return the ranks of a group that must still agree: a weight that a fault has changed stays different."""
    odd = {
        rank
        for fault in plan.faults
        if stays(fault) and step >= int(fault.trigger.get("step", 0))
        for rank in fault.ranks
    }
    return tuple(rank for rank in group if rank not in odd)


def _beginning_anew(plan: Plan, history: History) -> list[Window]:
    """Return the recoveries after which ranks begin anew within the launch, or only read a checkpoint and fail."""
    begun = {window.number for window in replayed_windows(plan, history)}
    return [
        window
        for window in recovery_windows(plan, history)
        if window.number in begun or any(recovery.reads_checkpoint for recovery in window.tried)
    ]


def _states(plan: Plan, history: History, attempt: str) -> Iterator[tuple[int, dict[int, Event]]]:
    """Yield step and events by rank.

    Step 0 is the state before the first, -n the state after the n-th recovery of the launch. A rank that begins several
    times within one recovery counts with its last beginning: before, it waited for its state.
    """
    states: dict[int, dict[int, Event]] = defaultdict(dict)
    try:
        recoveries = _beginning_anew(plan, history) if attempt == TRAIN else []
    except Ambiguous:
        recoveries = []  # the check ``resume`` says so
    for fact in history.select("initial", attempt=attempt):
        if fact.rank is not None and not _is_rejoining(plan, history, fact):
            number = next((window.number for window in reversed(recoveries) if window.begin <= fact.mono), 0)
            states[-number][fact.rank] = fact
    for rank, by_step in digests(history, attempt).items():
        for step, event in by_step.items():
            states[step][rank] = event
    yield from states.items()


def _is_rejoining(plan: Plan, history: History, fact: Event) -> bool:
    """Return whether this is the state of a rank that has come back later than the others: its mechanism judges it."""
    if not rejoining(plan):
        return False
    started = history.first("agent.start", attempt=TRAIN, rank=fact.rank)
    if started is not None and started.pid != fact.pid:
        return True
    begun = history.first("initial", attempt=TRAIN, rank=fact.rank, pid=fact.pid)
    return begun is not None and begun.seq != fact.seq


def _judge_coverage(
    plan: Plan, attempt: str, group: tuple[int, ...], states: dict[int, dict[int, Event]], collector: Collector
) -> None:
    """Judge that every rank of the group was compared with another one after a step.

    It is the last step, where the launch reaches it. This step has a digest however thin the digests are, and it comes
    after every recovery.
    """
    last = attempt == RESUME or (not plan.resume.resumes and reaches_the_end(plan))
    together: set[int] = set()
    for step, events in states.items():
        present = [rank for rank in group if rank in events and _replicated(events[rank])]
        if len(present) > 1 and (step == plan.training.last_step if last else step > 0):
            together.update(present)
    alone = [rank for rank in group if rank not in together]
    if alone:
        after = f" after step {plan.training.last_step}" if last else ""
        collector.unknown(
            EXPECTED,
            f"no digests to compare {ranks_text(alone)} by{after} in attempt {attempt}",
            data=about(alone, step=plan.training.last_step),
        )


def _judge_state(
    attempt: str,
    step: int,
    group: tuple[int, ...],
    events: dict[int, Event],
    unshared: frozenset[str],
    collector: Collector,
    when: str,
) -> int:
    """Compare the ranks with the first of the group, and return their number.

    ``unshared`` are names of parameters that the ranks do not share, ``when`` says the moment in words.
    """
    present = [rank for rank in group if rank in events]
    if len(present) < 2:
        return 0
    reference = events[present[0]]
    expected = _replicated(reference, unshared)
    compared = 0
    for rank in present[1:]:
        actual = _replicated(events[rank], unshared)
        if bool(actual) != bool(expected):
            silent = rank if expected else present[0]
            observation = f"no digests of rank {silent} {when} of attempt {attempt}"
            collector.unknown(
                EXPECTED, observation, reference.source, events[rank].source, data=about(silent, step=max(step, 0))
            )
            continue
        compared += bool(actual)
        names = sorted(name for name in {*actual, *expected} if actual.get(name) != expected.get(name))
        if names:
            observation = f"ranks {present[0]} and {rank} disagree {when} of attempt {attempt}: {text_list(names)}"
            collector.fail(
                EXPECTED,
                observation,
                reference.source,
                events[rank].source,
                data=about(
                    (present[0], rank),
                    step=max(step, 0),
                    parameters=names,
                    compared=len({*actual, *expected}),
                    quantity=REPLICA,
                    expected=expected.get(names[0]),
                    seen=actual.get(names[0]),
                ),
            )
    return compared


def _moment(plan: Plan, step: int) -> str:
    if step < 0:
        mechanism = chains(plan)[-step - 1][-1].mechanism
        kind = next((kind for kind, names in _RECOVERIES.items() if mechanism in names), "recovery")
        return f"after {kind} {-step}"
    return f"after step {step}" if step else "before the first step"


def _replicated(event: Event, unshared: frozenset[str] = frozenset()) -> dict[str, object]:
    parameters = event.data.get("parameters") or {}
    return {name: digest for name, digest in parameters.items() if is_replicated(name) and name not in unshared}
