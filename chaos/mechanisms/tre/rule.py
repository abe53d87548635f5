"""Part of check ``mechanism``: TRE took every rank back to the planned checkpoint, once, without the SDK."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.background import is_finished
from chaos.evidence.checkpoints.parameters import is_appended, is_flag
from chaos.evidence.collect import Collector
from chaos.evidence.facts import TRAIN, places, step_of
from chaos.evidence.scenario_line import line_of
from chaos.evidence.statement_data import about
from chaos.evidence.timestamp import Timestamp
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.case import Case
from chaos.mechanisms.markers import Launch
from chaos.mechanisms.registry import Rule
from chaos.mechanisms.tre.phases import phase_ends
from chaos.observe.checkpoints.checkpoint import CheckpointError
from chaos.observe.checkpoints.mindformers_layout import ITERATION, companion
from chaos.observe.checkpoints.norm_record import NAME, NormRecordError, find_norm_records, read_norm_record
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.model import Plan

HANDLERS: tuple[str, ...] = ()
"""TRE calls no handler of the SDK."""

RECORD = f"{NAME} holds every abnormal step with the norm of each time it was trained, and no other"
_TOLERANCE = 1e-3
"""Relative difference between a norm in the record (summed in float32) and the one in a digest (in float64)."""


def judge(case: Case) -> None:
    """Judge every rank's loads within the recovery, and its log."""
    expected = _expected(case)
    for rank in range(case.plan.layout.ranks):
        loads = _of_rank(case, "load.begin", rank)
        ended = _of_rank(case, "load.end", rank)
        _judge_loads(case, rank, loads, ended, expected)
    _judge_logs(case, expected)
    case.collector.settle(expected, "it did, on every rank", case.line)


def _norms(plan: Plan, history: History) -> dict[int, list[float]]:
    """Return the norms of rank 0 in the steps in which the record may hold them, in the order of training."""
    norms: dict[int, list[float]] = {}
    for event in history.select("digest", attempt=TRAIN, rank=0):
        gradients = event.data.get("gradients")
        if isinstance(gradients, dict) and plan.fault_tolerance.watch is not None:
            norm = float.fromhex(str(gradients["norm"]))
            if norm >= plan.fault_tolerance.watch.threshold:
                norms.setdefault(step_of(event), []).append(norm)
    return norms


def judge_record(plan: Plan, history: History, artifacts: Artifacts, collector: Collector) -> None:
    """Judge the record of abnormal norms by the digests of rank 0. Says nothing where the norm is not watched."""
    if plan.fault_tolerance.watch is None:
        return
    history_steps = _norms(plan, history)
    paths = artifacts.search(find_norm_records)
    required = expected_record(plan)
    if len(paths) > 1:
        names = [artifacts.relative(path) for path in paths]
        collector.unknown(RECORD, f"there are {len(paths)} of that name, and one job writes one", *names[:5])
        collector.close()
        return
    if not paths:
        if required:
            collector.fail(
                RECORD,
                f"there is no {NAME}, step {min(required)} should be in it",
                _line(plan),
                data=about(step=min(required)),
            )
        collector.settle(RECORD, "there is none, and no step is abnormal")
        return
    where = artifacts.relative(paths[0])
    try:
        record = read_norm_record(paths[0])
    except (NormRecordError, OSError) as error:
        collector.fail(RECORD, str(error), where, data=about(file=where))
        collector.close()
        return
    for step in sorted(required.keys() | record.keys()):
        norms, times = record.get(step, []), required.get(step, 0)
        if len(norms) != times:
            data = about(0, step=step, file=where, quantity="norms", expected=times, seen=len(norms))
            collector.fail(RECORD, f"step {step} has {len(norms)} norms, not {times}", _line(plan), where, data=data)
            continue
        low = [norm for norm in norms if norm < plan.fault_tolerance.watch.threshold]
        if low:
            data = about(0, step=step, file=where, quantity="norm", seen=low[0])
            text = f"step {step} is in it with {low[0]:g}, which is below the threshold"
            collector.fail(RECORD, text, where, data=data)
        recorded_norms = history_steps.get(step, [])
        expected_norms = norms[1:] if step in plan.fault_tolerance.watch.recorded else norms
        if len(recorded_norms) < len(expected_norms):
            count, expected_count = len(recorded_norms), len(expected_norms)
            text = f"step {step} is in it {expected_count} times, rank 0 recorded {count} norms of its gradients there"
            collector.unknown(RECORD, text, where, data=about(step=step, file=where))
        for norm, recorded in zip(expected_norms, recorded_norms, strict=False):
            if not math.isclose(norm, recorded, rel_tol=_TOLERANCE):
                text = f"step {step} is in it with {norm:g}, rank 0's gradients had {recorded:g}"
                collector.fail(
                    RECORD,
                    text,
                    where,
                    data=about(0, step=step, file=where, quantity="norm", expected=recorded, seen=norm),
                )
    collector.settle(RECORD, f"it holds {', '.join(f'step {step}' for step in sorted(record))}", where)


def expected_record(plan: Plan) -> dict[int, int]:
    """Return how many norms the record must hold, by step."""
    watch = plan.fault_tolerance.watch
    if watch is None:
        return {}
    required = dict.fromkeys(watch.recorded, 1)
    answered = {
        name for recovery in plan.response.recoveries if recovery.mechanism == "TRE" for name in recovery.faults
    }
    for fault in plan.faults:
        step = fault.trigger.get("step")
        if fault.effect.alters != "norm" or not isinstance(step, int):
            continue
        if fault.id in answered:
            required[step] = required.get(step, 0) + 1 + int(fault.parameters.get("repeat", 0))
        elif step in watch.recorded:
            required[step] += 1
    return required


def _line(plan: Plan) -> str:
    return line_of(plan, "mechanism")


def _expected(case: Case) -> str:
    if not case.recovery.succeeds:
        return f"TRE begins to take every rank back to the checkpoint of step {case.recovery.step}, and is broken off"
    return f"TRE takes every rank back once, to the checkpoint of step {case.recovery.step}, in its own process"


def _of_rank(case: Case, name: str, rank: int) -> list[Event]:
    return case.window.of(case.history.select(name, attempt=TRAIN, rank=rank))


def _lost(case: Case) -> set[int]:
    """Return the ranks that another fault takes inside this recovery."""
    if case.recovery.succeeds:
        return set()
    inside = [fault for fault in case.plan.faults if fault.trigger.get("phase") == "checkpoint.load"]
    return {rank for fault in inside for rank in fault.ranks}


def _judge_loads(case: Case, rank: int, loads: list[Event], ended: list[Event], expected: str) -> None:
    collector, lost = case.collector, _lost(case)
    if not loads:
        if case.history.first("train.begin", attempt=TRAIN, rank=rank) is None:
            collector.unknown(expected, f"rank {rank} has recorded nothing", case.line, data=about(rank))
        else:
            collector.fail(expected, f"rank {rank} loaded no checkpoint", case.line, data=about(rank))
        return
    if (times := _times(loads)) > 1:
        collector.fail(expected, f"rank {rank} loaded {times} times", case.line, *places(loads), data=about(rank))
    if rank in lost:
        if ended:
            collector.fail(
                expected, f"rank {rank} was lost in the load, and ended it", ended[0].source, data=about(rank)
            )
        return
    ends = Counter(event.data.get("path") for event in ended)
    if open_ := Counter(event.data.get("path") for event in loads) - ends:
        begun = next(event for event in loads if event.data.get("path") in open_)
        collector.unknown(
            expected, f"rank {rank} began to load and no end of it was recorded", begun.source, data=about(rank)
        )
    elif ended:
        _judge_loaded(case, ended[0], expected)
    for load in {event.data.get("path"): event for event in reversed(loads)}.values():
        _judge_saved(case, rank, load, expected)


def _times(loads: list[Event]) -> int:
    """Return how many checkpoints were loaded.

    In MindFormers' new layout (2.1) the files of a save are read one by one, first for the list of their content and
    then for the content: such a save is loaded once while no file of it is read more than twice.
    """
    saves: dict[Path, Counter[object]] = {}
    single = 0
    for event in loads:
        if (save := _iteration(event)) is None:
            single += 1
        else:
            saves.setdefault(save, Counter())[event.data.get("path")] += 1
    return single + sum(-(-max(reads.values()) // 2) for reads in saves.values())


def _iteration(load: Event) -> Path | None:
    """Return the directory of the load's save in MindFormers' new layout; None for a file of another layout."""
    directory = Path(str(load.data.get("path"))).parent
    return directory if ITERATION.fullmatch(directory.name) else None


def _judge_saved(case: Case, rank: int, load: Event, expected: str) -> None:
    """Judge that the loaded file was saved by the rank after the planned step, and was finished."""
    collector, path = case.collector, str(load.data.get("path"))
    # MindSpore adds the format to a name that has none, as MindFormers gives it in its new layout.
    names = {path} if _iteration(load) is None else {path, path.removesuffix(".safetensors")}
    saves = [
        event
        for event in case.history.select("checkpoint.end", attempt=TRAIN, rank=rank, kind="periodic")
        if event.data.get("path") in names and event.mono < load.mono
    ]
    if not saves:
        collector.fail(
            expected, f"rank {rank} loaded a file that it had not saved: {path}", load.source, data=about(rank)
        )
    elif step_of(saves[-1]) != case.recovery.step:
        observation = f"rank {rank} loaded what it had saved after step {step_of(saves[-1])}"
        collector.fail(
            expected, observation, case.line, load.source, saves[-1].source, data=about(rank, step=step_of(saves[-1]))
        )
    elif not is_finished(case.history, saves[-1], load.mono):
        observation = (
            f"rank {rank} has not recorded that the file of step {step_of(saves[-1])} was written when it loaded it"
        )
        collector.unknown(
            expected, observation, load.source, saves[-1].source, data=about(rank, step=step_of(saves[-1]))
        )


def _judge_loaded(case: Case, end: Event, expected: str) -> None:
    """Judge that a rank has loaded all of a file: its content or, where it is gone, the rank's saved state."""
    count, path = end.data.get("parameters"), Path(str(end.data.get("path")))
    # In MindFormers' new layout a rank's save is in several files.
    if not isinstance(count, int) or companion(path) is not None:
        return
    held = len({name for name in _names(case, end, path) if not (is_flag(name) or is_appended(name))})
    if count < held:
        case.collector.fail(
            expected,
            f"rank {end.rank} loaded {count} of {held} parameters",
            case.line,
            end.source,
            data=about(end.rank, quantity="parameters", expected=held, seen=count),
        )


def _names(case: Case, end: Event, path: Path) -> Iterable[str]:
    kept = case.artifacts.locate(path.as_posix())
    if kept is not None:
        try:
            return case.artifacts.read_checkpoint(kept).digests
        except CheckpointError:
            pass  # check checkpoint judges that
    digest = case.history.last("digest", attempt=TRAIN, rank=end.rank, step=case.recovery.step)
    parameters = digest.data.get("parameters") if digest is not None else None
    return parameters if isinstance(parameters, dict) else ()


def _judge_logs(case: Case, expected: str) -> None:
    """Judge the logs of MindSpore and the monitor, as far as the worker's log is there; a lost rank's may break off."""
    lost = _lost(case)
    for rank in range(case.plan.layout.ranks):
        events = case.artifacts.worker_events(TRAIN, rank)
        if not events:
            case.collector.unknown(expected, f"rank {rank} has no log", case.line, data=about(rank))
            continue
        if rank in lost:
            continue
        steps = [event.step for event in _of_kind(events, "tft.resumed")]
        planned = [recovery.step for recovery in case.plan.response.recoveries if recovery.mechanism == "TRE"]
        if steps != planned:
            where = tuple(event.source for event in _of_kind(events, "tft.resumed"))
            observation = f"rank {rank} logs that it resumed after TREError from steps {steps}, not {planned}"
            case.collector.fail(expected, observation, case.line, *where, data=about(rank))
        thrown = list(_of_kind(events, "tre.thrown"))
        if len(thrown) != len(planned):
            observation = f"rank {rank} logs {len(thrown)} abnormal norms that stop the training, not {len(planned)}"
            case.collector.fail(expected, observation, case.line, *(event.source for event in thrown), data=about(rank))


def _of_kind(events: list[LogEvent], kind: str) -> Iterator[LogEvent]:
    return (event for event in events if event.kind == kind)


def _phase_ends(launch: Launch, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    return phase_ends(launch.plan, launch.history, after)


RULE = Rule(handlers=HANDLERS, judge=judge, phase_ends=_phase_ends, judge_launch=judge_record)
