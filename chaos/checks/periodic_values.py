"""Part of check ``checkpoint``: a periodic checkpoint holds what its rank held, whether or not it was ever loaded.

The next fault may need it: one that was saved after a recovery with another content would spoil the next one.
"""

from __future__ import annotations

from chaos.checks.artifacts import Artifacts
from chaos.checks.broken_off import broken_off
from chaos.checks.collect import Collector
from chaos.checks.damage import is_damaged
from chaos.checks.facts import text_list
from chaos.checks.parameters import is_appended, is_flag, is_optimizer_state
from chaos.checks.periodic import periodic
from chaos.checks.torn_tails import GONE
from chaos.checks.twin import Twin, origin
from chaos.checks.whole import lacking
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.checkpoint import CheckpointError, CheckpointNotSupported
from chaos.observe.layout import FoundCheckpoint
from chaos.observe.mindformers_layout import companion, find_trackers
from chaos.observe.mindformers_records import read_tracker
from chaos.observe.saved_state import SavedState
from chaos.plan.model import Plan

EXPECTED = "every periodic checkpoint holds what its rank held after the stored step"


def judge_periodic_values(plan: Plan, history: History, artifacts: Artifacts, twin: Twin, found: Collector) -> None:
    """Compare the periodic files that are left with the digests of their ranks.

    A step may have been trained more than once: any of its states will do. Of files whose step has no digest, the
    values are not compared; that all parameters are there is asked of them too.
    """
    files = periodic(history, artifacts)
    unfinished = broken_off(plan, history, artifacts) if files else set()
    compared = 0
    for file in files:
        try:
            state = artifacts.read_checkpoint(file.path)
        except CheckpointNotSupported as error:
            seen = f"rank {file.rank}'s file cannot be judged: {error.problem}"
            found.unknown(EXPECTED, seen, artifacts.relative(file.path))
            continue
        except CheckpointError as error:
            _judge_unreadable(file, error, unfinished, history, artifacts, found)
            continue
        step = state.numbers.get("global_step", state.numbers.get("step_num"))
        recorded = _of_step(history, file.rank, step)
        if step is not None and recorded:
            compared += 1
            _judge(file, state, step, recorded, twin, found)
        else:
            _judge_names(file, state, history, artifacts, found)
    if compared:
        found.settle(EXPECTED, f"{compared} files compared by digest")
    found.close()


def _of_step(history: History, rank: int, step: int | None) -> list[Event]:
    return [] if step is None else _with_parameters(history.select("digest", rank=rank, step=step))


def _with_parameters(events: list[Event]) -> list[Event]:
    return [one for one in events if isinstance(one.data.get("parameters"), dict)]


def _judge_unreadable(
    file: FoundCheckpoint,
    error: CheckpointError,
    unfinished: set[str],
    history: History,
    artifacts: Artifacts,
    found: Collector,
) -> None:
    """A file with its own name was finished, so it can be read, unless its end or a fault came in between."""
    where = artifacts.relative(file.path)
    broken = artifacts.relative(file.saved_as.with_suffix(".tmp")) in unfinished or _is_open(file, history, artifacts)
    if broken or is_damaged(history, where):
        return
    seen = f"rank {file.rank}'s file is damaged: {error.problem}"
    if any(history.first(event) is not None for event in GONE):
        found.unknown(EXPECTED, f"{seen}; a host has gone, and what it had not written to its disk with it", where)
    else:
        found.fail(EXPECTED, seen, where)


def _is_open(file: FoundCheckpoint, history: History, artifacts: Artifacts) -> bool:
    """Whether it is part of a save of MindFormers' new layout that was broken off: the tracker is written last."""
    if companion(file.saved_as) is None or all(one.data.get("code") == 0 for one in history.select("rank.exit")):
        return False
    for tracker in find_trackers(artifacts.job_dir):
        if tracker.parent == file.path.parent.parent and not tracker.is_symlink():
            try:
                return file.step_in_epoch > read_tracker(tracker)
            except CheckpointError:
                return True  # chaos.checks.save_records says so
    return True


def _judge_names(
    file: FoundCheckpoint, state: SavedState, history: History, artifacts: Artifacts, found: Collector
) -> None:
    """Of a file to whose step there is no digest: the rank has the same parameters all the time."""
    recorded = history.select("initial", rank=file.rank) + history.select("digest", rank=file.rank)
    for one in _with_parameters(recorded)[-1:]:
        if missing := lacking(file, state, one.data["parameters"]):
            found.fail(EXPECTED, _lacks(file, state, missing), artifacts.relative(file.path), one.source)


def _lacks(file: FoundCheckpoint, state: SavedState, missing: list[str]) -> str:
    kind = "optimizer state" if all(map(is_optimizer_state, missing)) else "parameters"
    step = state.numbers.get("global_step", state.numbers.get("step_num"))
    of_step = "" if step is None else f" of step {step}"
    return f"rank {file.rank}'s file{of_step} lacks {kind}: {text_list(missing)}"


def _judge(
    file: FoundCheckpoint, state: SavedState, step: int, recorded: list[Event], twin: Twin, found: Collector
) -> None:
    missing: list[str] = []
    unequal: list[str] = []
    shared: list[str] = []
    for one in recorded:
        theirs = one.data["parameters"]
        missing = lacking(file, state, theirs)
        shared = [name for name in state.digests if name in theirs and not (is_flag(name) or is_appended(name))]
        unequal = sorted(name for name in shared if theirs[name] != state.digests[name])
        if shared and not (missing or unequal):
            return
    where = twin.artifacts.relative(file.path)
    if missing:
        found.fail(EXPECTED, _lacks(file, state, missing), where, recorded[-1].source)
    if unequal:
        count = f"{len(unequal)} of {len(shared)} parameters in rank {file.rank}'s file of step {step}"
        seen = f"{count} differ: {text_list(unequal)}"
        seen += origin(twin, file.rank, unequal[0], state.digests, step)
        # Both are of one run, so they are equal bit for bit, whatever the tolerance is between two.
        found.fail(EXPECTED, seen, where, recorded[-1].source)
    if not shared:
        seen = f"no parameter in rank {file.rank}'s file of step {step} can be compared"
        found.unknown(EXPECTED, seen, where, recorded[-1].source)
