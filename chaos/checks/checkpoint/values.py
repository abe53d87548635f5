"""The values of an end-of-life checkpoint: every part is there, finite, and equal to the fault-free run's.

A file equals what its rank held bit for bit, by digest: both are of one run. Where the plan has a tolerance, the file
is compared with the fault-free run by the samples of what the rank held.
"""

from __future__ import annotations

from dataclasses import replace

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.baseline import Baseline, at_baseline, origin
from chaos.evidence.checkpoints.owner import OwnedCheckpoint
from chaos.evidence.checkpoints.parameters import (
    MAY_BE_ADDED,
    is_accumulated,
    is_appended,
    is_flag,
    is_optimizer_state,
    is_setting,
)
from chaos.evidence.checkpoints.periodic import resumed_from
from chaos.evidence.checkpoints.saved import stored_step
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, digests, text_list
from chaos.evidence.statement_data import SAVED, StatementData, about
from chaos.evidence.tolerances.agreement import Agreement, agreement
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.saved_state import SavedState
from chaos.plan.model import Plan

WHOLE = "weights and optimizer state are all there, and finite"
HELD = "every value equals what the rank held after the saved step"
MARKED = "the saved state is marked consistent"
EQUAL = "every value equals the fault-free run's at the saved step"


def judge_values(
    plan: Plan, history: History, artifacts: Artifacts, states: dict[OwnedCheckpoint, SavedState], collector: Collector
) -> None:
    """Judge the parameters of every file that loads."""
    baseline = Baseline(plan, history, artifacts)
    recorded = digests(history, TRAIN)
    saved = resumed_from(plan, history, artifacts) if plan.resume.resumes else None
    for file, state in states.items():
        _judge_whole(history, baseline, recorded, artifacts, file, state, collector)
    collector.settle(WHOLE, f"{len(states)} files are whole", *map(artifacts.relative, (file.path for file in states)))
    compared, comparable = 0, plan.equivalence.comparable
    for file, state in states.items():
        event = recorded.get(file.rank, {}).get(_step(baseline, file, state))
        if event is not None:
            compared += 1
            _judge_equal(HELD, baseline, file, state, event, event.source, saved, collector)
        elif not baseline.is_requested or (comparable is not None and _step(baseline, file, state) > comparable.until):
            observation = (
                f"rank {file.rank} recorded no digests at the saved step, and there is no baseline to compare with"
            )
            collector.unknown(
                HELD,
                observation,
                artifacts.relative(file.path),
                data=about(file.rank, file=artifacts.relative(file.path)),
            )
    if compared:
        collector.settle(HELD, f"{compared} files compared by digest")
    collector.close()
    if baseline.is_requested:
        _judge_against_baseline(plan, artifacts, baseline, recorded, states, saved, collector)


def _step(baseline: Baseline, file: OwnedCheckpoint, state: SavedState) -> int:
    """Return the saved step; -1, a step without any record, where it is not known."""
    step = stored_step(baseline.history, baseline.artifacts, file)
    return -1 if step is None else step


def _judge_against_baseline(
    plan: Plan,
    artifacts: Artifacts,
    baseline: Baseline,
    recorded: dict[int, dict[int, Event]],
    states: dict[OwnedCheckpoint, SavedState],
    saved: int | None,
    collector: Collector,
) -> None:
    if baseline.objection is not None:
        reason, where = baseline.objection
        collector.unknown(EQUAL, f"cannot be compared: {reason}", *where)
        collector.close()
        return
    until = None if plan.equivalence.comparable is None else plan.equivalence.comparable.until
    states = {file: state for file, state in states.items() if until is None or _step(baseline, file, state) <= until}
    if not states and until is not None:
        return  # chaos.checks.scope says so
    for file, state in states.items():
        event = baseline.digests.get(file.rank, {}).get(_step(baseline, file, state))
        if event is None:
            observation = f"the baseline has no digests of rank {file.rank} at step {_step(baseline, file, state)}"
            collector.unknown(
                EQUAL,
                observation,
                artifacts.relative(file.path),
                data=about(file.rank, step=_step(baseline, file, state), file=artifacts.relative(file.path)),
            )
        else:
            held = recorded.get(file.rank, {}).get(_step(baseline, file, state))
            _judge_equal(EQUAL, baseline, file, state, event, at_baseline(event), saved, collector, held=held)
    collector.settle(
        EQUAL,
        f"{len(states)} files compared by digest",
        *(artifacts.relative(checkpoint.path) for checkpoint in states),
    )


def _parameters(event: Event | None) -> dict[str, str]:
    parameters = event.data.get("parameters") if event else None
    return parameters if isinstance(parameters, dict) else {}


def _judge_whole(
    history: History,
    baseline: Baseline,
    recorded: dict[int, dict[int, Event]],
    artifacts: Artifacts,
    file: OwnedCheckpoint,
    state: SavedState,
    collector: Collector,
) -> None:
    where = artifacts.relative(file.path)
    step = _step(baseline, file, state)
    witnesses = [
        baseline.digests.get(file.rank, {}).get(step),
        recorded.get(file.rank, {}).get(step),
        next(iter(baseline.digests.get(file.rank, {}).values()), None),
        history.first("initial", attempt=TRAIN, rank=file.rank),
    ]
    names = next((set(named) for witness in witnesses if (named := _parameters(witness))), set())
    if not names:
        collector.unknown(
            WHOLE, f"no record of which parameters rank {file.rank} has", where, data=about(file.rank, file=where)
        )
    missing = sorted(name for name in names - set(state.digests) if not (is_flag(name) or is_appended(name)))
    if missing:
        kind = "optimizer state" if all(map(is_optimizer_state, missing)) else "parameters"
        collector.fail(
            WHOLE,
            f"rank {file.rank}'s file lacks {kind}: {text_list(missing)}",
            where,
            data=about(file.rank, step=step, file=where, parameters=missing),
        )
    strange = sorted(
        name
        for name in set(state.digests) - names - _handed_over(history, file)
        if names and not (is_flag(name) or is_appended(name) or is_setting(name) or name in MAY_BE_ADDED)
    )
    if strange:
        collector.fail(
            WHOLE,
            f"rank {file.rank}'s file holds what the job does not have: {text_list(strange)}",
            where,
            data=about(file.rank, step=step, file=where, parameters=strange),
        )
    if state.infinite:
        collector.fail(
            WHOLE,
            f"not finite in rank {file.rank}'s file: {text_list(sorted(state.infinite))}",
            where,
            data=about(file.rank, step=step, file=where, parameters=sorted(state.infinite), quantity=SAVED),
        )
    _judge_flags(names, file, state, about(file.rank, step=step, file=where, quantity=SAVED), where, collector)


def _judge_flags(
    names: set[str], file: OwnedCheckpoint, state: SavedState, subject: StatementData, where: str, collector: Collector
) -> None:
    """Judge that the file is marked as a consistent state."""
    lacking = [name for name in sorted(names) if is_flag(name) and name not in state.numbers]
    if lacking and file.directory_step is not None:
        observation = f"rank {file.rank}'s file lacks {text_list(lacking)}, by which a state is marked so"
        collector.unknown(MARKED, observation, where, data=replace(subject, parameters=tuple(lacking)))
    flags = {name: value for name, value in state.numbers.items() if is_flag(name) and value != 1}
    for name, value in flags.items():
        observation = f"{name} is {value} in rank {file.rank}'s file: it was saved in the middle of an update"
        data = replace(subject, parameters=(name,), expected=1, seen=value)
        collector.fail(MARKED, observation, where, data=data)


def _handed_over(history: History, file: OwnedCheckpoint) -> set[str]:
    """Return the names that the rank recorded as added to the parameters by the saver, the job for example."""
    saves = history.select("checkpoint.end", attempt=TRAIN, rank=file.rank, kind="end-of-life")
    added = (event.data.get("appended") for event in saves)
    return {name for names in added if isinstance(names, list) for name in names if isinstance(name, str)}


def _judge_equal(
    expected: str,
    baseline: Baseline,
    file: OwnedCheckpoint,
    state: SavedState,
    event: Event,
    source: str,
    saved: int | None,
    collector: Collector,
    *,
    held: Event | None = None,
) -> None:
    """Judge the file by ``event``. ``held`` is the rank's record of the same step where ``event`` is another run's."""
    where = baseline.artifacts.relative(file.path)
    theirs = _parameters(event)
    shared = [name for name in state.digests if name in theirs and not is_flag(name)]
    if not shared:
        collector.unknown(
            expected,
            f"no parameter of rank {file.rank} can be compared",
            where,
            source,
            data=about(file.rank, file=where),
        )
        return
    unequal = sorted(name for name in shared if theirs[name] != state.digests[name])
    if saved not in (None, _step(baseline, file, state)):
        # The job has gone back to the last update. A rank that waits for others in the next step holds that step's
        # gradients in its accumulators, and nothing reads them.
        unequal = [name for name in unequal if not is_accumulated(name)]
    if not unequal:
        return
    count = f"{len(unequal)} of {len(shared)} parameters of rank {file.rank} differ: {text_list(unequal)}"
    count += origin(baseline, file.rank, unequal[0], state.digests, _step(baseline, file, state))
    agreed = Agreement("fail")
    if expected == EQUAL and not baseline.plan.equivalence.exact:
        agreed = _agreement(baseline.plan, unequal, state, held, event)
    if agreed.verdict == "pass":
        return
    count += f"; {agreed.text}" if agreed.text else ""
    step = _step(baseline, file, state)
    subject = about(file.rank, step=step, file=where, parameters=unequal, compared=len(shared))
    if agreed.verdict == "unknown":
        collector.unknown(expected, count, where, source, data=subject)
        return
    first = unequal[0]
    data = replace(subject, quantity=SAVED, expected=theirs[first], seen=state.digests[first])
    collector.fail(expected, count, where, source, data=data)


def _agreement(plan: Plan, names: list[str], state: SavedState, held: Event | None, theirs: Event) -> Agreement:
    """Judge the file's values by the samples of what its rank held, where that is what the file holds."""
    ours = _parameters(held)
    if held is None or any(ours.get(name) != state.digests[name] for name in names):
        return Agreement("unknown", "no samples are kept of what the file holds")
    return agreement(plan, names, held, theirs)
