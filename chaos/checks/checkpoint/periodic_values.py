"""Part of check ``checkpoint``: a periodic checkpoint holds its rank's state, whether or not it was ever loaded.

The next fault may need it: a checkpoint saved after a recovery with other content would spoil the next recovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from chaos.checks.checkpoint.asked import asked_of, names_of
from chaos.checks.checkpoint.broken_off import broken_off
from chaos.checks.checkpoint.saved_numbers import HOST_GONE, judge_numbers, steps_of, steps_text
from chaos.checks.history.torn_tails import GONE
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.baseline import Baseline, origin
from chaos.evidence.checkpoints.begun_with import begun_with
from chaos.evidence.checkpoints.beside import is_beside
from chaos.evidence.checkpoints.damage import is_damaged
from chaos.evidence.checkpoints.owner import OwnedCheckpoint, OwnerUnknown, owners_of
from chaos.evidence.checkpoints.parameters import is_optimizer_state
from chaos.evidence.checkpoints.periodic import outside_text, periodic
from chaos.evidence.checkpoints.saved import outside, unowned
from chaos.evidence.checkpoints.several_networks import as_recorded, is_of_another_network
from chaos.evidence.checkpoints.sharded import as_held
from chaos.evidence.checkpoints.stored import COUNTER, STEP, steps_by_name
from chaos.evidence.checkpoints.whole import is_converted, lacking, unequal
from chaos.evidence.collect import Collector
from chaos.evidence.facts import step_of, text_list
from chaos.evidence.statement_data import SAVED, about
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoints.checkpoint import CheckpointError, CheckpointNotSupported
from chaos.observe.checkpoints.layout import DIGESTED
from chaos.observe.checkpoints.mindformers_layout import find_trackers
from chaos.observe.checkpoints.saved_state import SavedState
from chaos.observe.checkpoints.tracked_layouts import layout_beside, read_tracked, save_of
from chaos.plan.model import Plan

EXPECTED = "every periodic checkpoint holds what its rank held after the step at which it was saved"

_EXPORT = "if no start goes on from this file, name it in job.exports"


def judge_periodic_values(
    plan: Plan, history: History, artifacts: Artifacts, baseline: Baseline, collector: Collector
) -> None:
    """Compare the remaining periodic files with the digests of their ranks.

    A step may have been trained more than once: each state that the rank may have held when it saved counts. The values
    of a file without a digest of its step are not compared; its parameters must be complete all the same. The step
    comes from the rank's record of the save or, where the record lacks it, from the file.
    """
    files, strays = periodic(history, artifacts), unowned(history, artifacts, "periodic")
    unfinished = broken_off(plan, history, artifacts) if files or strays else set()
    host_gone = any(history.first(event) is not None for event in GONE)
    compared, every = 0, artifacts.steps_per_update
    states: dict[OwnedCheckpoint, SavedState] = {}
    for stray in strays:
        _judge_stray(stray, unfinished, history, artifacts, collector)
    gone = outside(history, artifacts, "periodic")
    for save in gone[:1]:
        more = f" ({len(gone)} such saves in all)" if len(gone) > 1 else ""
        collector.unknown(EXPECTED, outside_text(save) + more, save.source, data=about(save.rank))
    for file in files:
        try:
            state = artifacts.read_checkpoint(file.path)
        except CheckpointNotSupported as error:
            observation = f"rank {file.rank}'s file cannot be judged: {error.problem}"
            collector.unknown(
                EXPECTED,
                observation,
                artifacts.relative(file.path),
                data=about(file.rank, file=artifacts.relative(file.path)),
            )
            continue
        except CheckpointError as error:
            _judge_unreadable(file, f"rank {file.rank}'s file", error, unfinished, history, artifacts, collector)
            continue
        states[file] = state
        steps = steps_of(file, state, every)
        if host_gone and (stored := _stored(state, every)) and not stored & steps:
            steps = stored  # the file there is of an earlier save, and sound
        recorded = [
            event for step in sorted(steps) for event in _not_superseded(file, _of_step(history, file.rank, step))
        ]
        if not recorded and (begun := begun_with(history, file)) is not None:
            recorded, steps = [begun], frozenset({step_of(begun)})
        if recorded:
            compared += _judge(plan, file, state, steps_text(steps), recorded, baseline, collector)
            continue
        _judge_names(plan, file, state, history, artifacts, collector)
        if not steps:
            observation = f"rank {file.rank}'s file holds no step, and the rank has recorded none at which it saved it"
            collector.unknown(
                EXPECTED,
                f"{observation}: {file.path.name}",
                artifacts.relative(file.path),
                data=about(file.rank, file=artifacts.relative(file.path)),
            )
    if compared:
        collector.settle(EXPECTED, f"{compared} files compared by digest")
    collector.close()
    judge_numbers(plan, history, artifacts, states, collector)


def _judge_stray(
    stray: OwnerUnknown, unfinished: set[str], history: History, artifacts: Artifacts, collector: Collector
) -> None:
    """Judge that a file without a known owner is sound; its content can be compared with nothing."""
    where = artifacts.relative(stray.path)
    try:
        artifacts.read_checkpoint(stray.path)
    except CheckpointNotSupported as error:
        collector.unknown(EXPECTED, f"{where} cannot be judged: {error.problem}", where, data=about(file=where))
    except CheckpointError as error:
        _judge_unreadable(stray, where, error, unfinished, history, artifacts, collector)
    else:
        collector.unknown(EXPECTED, f"{where}: {stray.reason}", where, data=about(file=where))


def _stored(state: SavedState, every: int) -> frozenset[int]:
    return frozenset().union(*steps_by_name(state.numbers, every).values())


def _of_step(history: History, rank: int, step: int) -> list[Event]:
    return _with_parameters(history.select("digest", rank=rank, step=step))


def _not_superseded(file: OwnedCheckpoint, recorded: list[Event]) -> list[Event]:
    """Return the states that the rank may have saved: without earlier trainings of a step that it had trained again."""
    made = file.made
    if made is None:
        return recorded
    same_process = [
        event for event in recorded if (event.attempt, event.pid) == (made.attempt, made.pid) and event.seq < made.seq
    ]
    return recorded[recorded.index(same_process[-1]) :] if same_process else recorded


def _with_parameters(events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event.data.get("parameters"), dict)]


def _judge_unreadable(
    file: OwnedCheckpoint | OwnerUnknown,
    what: str,
    error: CheckpointError,
    unfinished: set[str],
    history: History,
    artifacts: Artifacts,
    collector: Collector,
) -> None:
    """Judge an unreadable file.

    A file with its own name was finished, so it must be readable, unless its end or a fault came in between.
    """
    where = artifacts.relative(file.path)
    saved_as = file.path.with_name(file.path.name.removesuffix(DIGESTED))
    names = {artifacts.relative(path) for path in (saved_as, saved_as.parent, saved_as.with_suffix(".tmp"))}
    broken = not names.isdisjoint(unfinished) or _is_open(saved_as, history, artifacts)
    if broken or is_damaged(history, where):
        return
    observation = f"{what} is damaged: {error.problem}"
    data = about(file.rank if isinstance(file, OwnedCheckpoint) else None, file=where)
    if any(history.first(event) is not None for event in GONE):
        collector.unknown(EXPECTED, f"{observation}; {HOST_GONE}", where, data=data)
    else:
        collector.fail(EXPECTED, observation, where, data=data)


def _is_open(path: Path, history: History, artifacts: Artifacts) -> bool:
    """Return whether it belongs to a broken-off save of a layout with a tracker, which is written last."""
    save = save_of(path)
    if save is None or all(event.data.get("code") == 0 for event in history.select("rank.exit")):
        return False
    for tracker in artifacts.search(find_trackers):
        layout = layout_beside(tracker) if tracker.parent == save.root and not tracker.is_symlink() else None
        if layout is not None:
            try:
                tracked = read_tracked(tracker, layout)
            except CheckpointError:
                return True  # chaos.checks.checkpoint.save_records says so
            return isinstance(tracked, str) or save.step > tracked
    return True


def _judge_names(
    plan: Plan, file: OwnedCheckpoint, state: SavedState, history: History, artifacts: Artifacts, collector: Collector
) -> None:
    """Judge a file whose step has no digest by the names of its parameters: a rank always has the same names."""
    recorded = history.select("initial", rank=file.rank) + history.select("digest", rank=file.rank)
    for event in _with_parameters(recorded)[-1:]:
        named = as_recorded(state, event.data["parameters"])
        asked = asked_of(plan, history, artifacts, file, named, event)
        asked = [name for name in asked if not is_of_another_network(name)]  # only values say which network is which
        missing = lacking(file, named, asked)
        if missing and _is_of_no_state(history, artifacts, file, named, event.data["parameters"]):
            _say_none(file, artifacts, event, collector)
        elif missing:
            observation = _lacks(file, state, missing, artifacts.steps_per_update)
            collector.fail(
                EXPECTED,
                observation,
                artifacts.relative(file.path),
                event.source,
                data=about(file.rank, file=artifacts.relative(file.path), parameters=missing),
            )


def _is_of_no_state(
    history: History, artifacts: Artifacts, file: OwnedCheckpoint, state: SavedState, theirs: Mapping[str, str]
) -> bool:
    """Return whether a file holds nothing of its rank's state, as losses or data, and a later file of the rank does.

    Without a later one it may be the last checkpoint, which has lost everything.
    """
    if not _holds_none(state, theirs):
        return False
    last = max(file.steps, default=0)
    for other in owners_of(history, artifacts).owned:
        if other.rank == file.rank and other.path != file.path and max(other.steps, default=-1) >= last:
            with suppress(CheckpointError):  # its own judge says so
                if not _holds_none(as_recorded(artifacts.read_checkpoint(other.path), theirs), theirs):
                    return True
    return False


def _holds_none(state: SavedState, theirs: Mapping[str, str]) -> bool:
    """Return whether a file has no name of a rank's state, no state of an optimizer and no step."""
    names = state.digests.keys() | state.numbers.keys()
    return names.isdisjoint({*theirs, STEP, COUNTER}) and not any(map(is_optimizer_state, names))


def _say_none(file: OwnedCheckpoint, artifacts: Artifacts, recorded: Event, collector: Collector) -> None:
    """Say that a file may be none to go on from: it holds nothing of what its rank held."""
    where = artifacts.relative(file.path)
    observation = f"rank {file.rank}'s file {file.path.name} holds nothing of the state of the rank; {_EXPORT}"
    collector.unknown(EXPECTED, observation, where, recorded.source, data=about(file.rank, file=where))


def _lacks(file: OwnedCheckpoint, state: SavedState, missing: list[str], every: int) -> str:
    kind = "optimizer state" if all(map(is_optimizer_state, missing)) else "parameters"
    possible_steps = steps_by_name(state.numbers, every)
    steps = possible_steps.get(COUNTER, possible_steps.get(STEP))
    of_step = "" if steps is None else f" of step {steps_text(steps)}"
    hint = "" if kind == "parameters" or any(map(is_optimizer_state, state.digests)) else f"; {_EXPORT}"
    return f"rank {file.rank}'s file{of_step} lacks {kind}: {text_list(missing)}{hint}"


def _judge(
    plan: Plan,
    file: OwnedCheckpoint,
    whole: SavedState,
    step: str,
    recorded: list[Event],
    baseline: Baseline,
    collector: Collector,
) -> bool:
    """Compare a file with the states that its rank recorded; return whether it holds any of them.

    A file that holds nothing is one beside those that hold the state, where nothing is asked of it; so is one with
    other values, such as an average of the weights.
    """
    missing: list[str] = []
    different: list[str] = []
    shared: list[str] = []
    state = whole
    for event in recorded:
        theirs = event.data["parameters"]
        state = as_held(whole, file.rank, theirs)
        asked = asked_of(plan, baseline.history, baseline.artifacts, file, state, event)
        missing = lacking(file, state, asked)
        shared, different = unequal(state, theirs)
        if not (missing or different) and (shared or (names_of(event) and not asked)):
            return bool(shared)
    if different and is_beside(baseline.history, baseline.artifacts, file):
        return False
    last, where = recorded[-1], baseline.artifacts.relative(file.path)
    if missing and _is_of_no_state(baseline.history, baseline.artifacts, file, state, last.data["parameters"]):
        _say_none(file, baseline.artifacts, last, collector)
        return True
    if missing:
        observation = _lacks(file, state, missing, baseline.artifacts.steps_per_update)
        collector.fail(
            EXPECTED,
            observation,
            where,
            last.source,
            data=about(file.rank, step=step_of(last), file=where, parameters=missing),
        )
    if different:
        _say_different(file, state, step, last, (shared, different), baseline, collector)
    if not shared:
        observation = f"no parameter in rank {file.rank}'s file of step {step} can be compared"
        collector.unknown(
            EXPECTED, observation, where, last.source, data=about(file.rank, step=step_of(last), file=where)
        )
    return True


def _say_different(
    file: OwnedCheckpoint,
    state: SavedState,
    step: str,
    last: Event,
    names: tuple[list[str], list[str]],
    baseline: Baseline,
    collector: Collector,
) -> None:
    """Say which values differ from the rank's last record; ``names`` are those compared, and those that differ."""
    shared, different = names
    where = baseline.artifacts.relative(file.path)
    count = f"{len(different)} of {len(shared)} parameters in rank {file.rank}'s file of step {step}"
    observation = f"{count} differ: {text_list(different)}"
    observation += origin(baseline, file.rank, different[0], state.digests, step_of(last))
    # Both are of one run, so they are equal bit for bit, whatever the tolerance between two runs.
    if is_converted(file):
        observation += "; MindFormers saves bfloat16 as float32 in such a file, so that says nothing about the values"
        collector.unknown(
            EXPECTED,
            observation,
            where,
            last.source,
            data=about(file.rank, step=step_of(last), file=where, parameters=different, compared=len(shared)),
        )
    else:
        collector.fail(
            EXPECTED,
            observation,
            where,
            last.source,
            data=about(
                file.rank,
                step=step_of(last),
                file=where,
                parameters=different,
                compared=len(shared),
                quantity=SAVED,
                expected=last.data["parameters"][different[0]],
                seen=state.digests.get(different[0]),
            ),
        )
