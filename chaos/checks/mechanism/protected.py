"""Part of check ``mechanism``: after a recovery every rank is protected as before, so that the next fault is survived.

The agent of each rank records which handlers it registers, that it connects to the SDK and leaves it, and each report
of an update. Every such act of a rank before the first fault must happen again after the last recovery, in any process.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from chaos.checks.mechanism.unreported import owes_reports, reports_each_step, updated_steps
from chaos.checks.scope import NotChecked
from chaos.evidence.collect import Collector
from chaos.evidence.facts import RESUME, TRAIN, places, step_of, text_list
from chaos.evidence.protection import DISCONNECTED, PAUSED, REPORTED, Process, processes_of, steps_before, steps_since
from chaos.evidence.recovery_windows import Ambiguous, goes_on, reaches_the_end, recovery_windows
from chaos.evidence.statement_data import about
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.recovery.mechanism import NEEDS

EXPECTED = "after the recovery every rank is protected as before: its handlers, its connection to the SDK, its reports"

_REPORTS: Mapping[str, str] = MappingProxyType(
    {REPORTED: "reported the update of", PAUSED: "come to the point of a pause behind"}
)


def judge_protected(plan: Plan, history: History, collector: Collector) -> None:
    """Judge the launches that go on or were started again. Says nothing where no rank has recorded a protection."""
    attempts = _judged_attempts(plan, history)
    before = processes_of(history, TRAIN) if attempts else {}
    times = _times(plan, history) if _is_recorded(before) else None
    if times is None:
        return
    first, last = times
    compared = 0
    for attempt in attempts:
        after = before if attempt == TRAIN else processes_of(history, attempt)
        pairs = [
            (before[rank][0], processes[-1])
            for rank, processes in after.items()
            if rank in before and _goes_on(plan, processes[-1])
        ]
        compared += len(pairs)
        for old, new in pairs:
            _judge_handlers(old, new, first, collector)
            _judge_connection(old, new, first, collector)
        last_step = plan.training.last_step if attempt == RESUME or reaches_the_end(plan) else None
        _judge_leaving([new for _, new in pairs], last_step, collector)
        updated = updated_steps(history, attempt)
        _judge_reports(pairs, (first, last if attempt == TRAIN else 0), last_step, updated, collector)
        _judge_owed(plan, pairs, first, collector)
    if compared:
        collector.settle(EXPECTED, f"{compared} processes are")


def protection_left_out(plan: Plan, history: History) -> list[NotChecked]:
    """Return the comparisons left out where the agents have recorded no protection: agents of earlier versions."""
    protected = any(mechanism in NEEDS["MindIO"] for mechanism in plan.fault_tolerance.protection)
    if not protected or not _judged_attempts(plan, history):
        return []
    if _is_recorded(processes_of(history, TRAIN)):
        return []
    reason = "no agent of this run has recorded a registration; agents of earlier versions never did"
    return [NotChecked("mechanism", "that handlers and reports to the SDK are on again after the recovery", reason)]


def _judged_attempts(plan: Plan, history: History) -> list[str]:
    resumed = plan.resume.resumes and history.first("attempt.start", attempt=RESUME) is not None
    return [*([TRAIN] if goes_on(plan) else []), *([RESUME] if resumed else [])]


def _is_recorded(known: Mapping[int, list[Process]]) -> bool:
    return any(process.handlers or process.connections for processes in known.values() for process in processes)


def _times(plan: Plan, history: History) -> tuple[int, int] | None:
    """Return the acts of the first and the last fault that a recovery answers; of any fault where none is answered."""
    try:
        begins = [window.begin for window in recovery_windows(plan, history)]
    except Ambiguous:
        return None
    acts = begins or [event.mono for event in history.select("fault.injecting", attempt=TRAIN)]
    return (min(acts), max(acts)) if acts else None


def _goes_on(plan: Plan, process: Process) -> bool:
    """Return whether the process trained after the recovery, or must have.

    In some jobs no agent sees the steps.
    """
    return process.trained or reaches_the_end(plan) or process.start.attempt == RESUME


def _judge_handlers(old: Process, new: Process, first: int, collector: Collector) -> None:
    """Judge that the last process has the handlers of the first one at the first fault, by the same functions."""
    handlers = old.handlers_before(first)
    if not handlers and steps_before(old, first):
        collector.unknown(
            EXPECTED,
            f"rank {old.rank} has recorded no handler before the fault",
            old.start.source,
            data=about(old.rank),
        )
    missing = [name for name in handlers if name not in new.handlers]
    if missing:
        observation = (
            f"rank {new.rank}'s process {new.pid} has registered no handler {text_list(missing, len(missing))}"
        )
        collector.fail(
            EXPECTED,
            observation,
            new.start.source,
            *(handlers[name].source for name in missing[:3]),
            data=about(new.rank, pids=new.pid),
        )
    for name, event in handlers.items():
        last = new.handlers[name][-1] if name in new.handlers else event
        if last.data.get("function") != event.data.get("function"):
            observation = (
                f"rank {new.rank}'s handler {name} is {last.data.get('function')}, not {event.data.get('function')}"
            )
            collector.fail(EXPECTED, observation, last.source, event.source, data=about(new.rank))


def _judge_connection(old: Process, new: Process, first: int, collector: Collector) -> None:
    if not old.has_connected:
        if not steps_before(old, first):
            return  # it was hit before it came so far
        collector.unknown(
            EXPECTED, f"rank {old.rank} has recorded no connection to the SDK", old.start.source, data=about(old.rank)
        )
    elif not new.has_connected:
        observation = f"rank {new.rank}'s process {new.pid} has not connected to the SDK"
        collector.fail(
            EXPECTED, observation, new.start.source, old.connections[0].source, data=about(new.rank, pids=new.pid)
        )
    elif (left := new.disconnection()) is not None and new.last_step is not None:
        observation = f"rank {new.rank} left the SDK before its step {step_of(new.last_step)} ended"
        collector.fail(
            EXPECTED, observation, left.source, new.last_step.source, data=about(new.rank, step=step_of(new.last_step))
        )


def _judge_leaving(processes: list[Process], last_step: int | None, collector: Collector) -> None:
    """Judge that no rank left the SDK before the end of its training.

    Where ranks record their leaving at the end of their training, a rank without the record may have left before.
    """
    ended = [
        process for process in processes if process.last_step is not None and step_of(process.last_step) == last_step
    ]
    silent = [process for process in ended if all(event.event != DISCONNECTED for event in process.connections)]
    if len(silent) < len(ended):
        for process in silent:
            observation = f"when rank {process.rank} has left the SDK is not recorded, as it is of others"
            collector.unknown(EXPECTED, observation, process.start.source, data=about(process.rank))


def _judge_reports(
    pairs: list[tuple[Process, Process]],
    acts: tuple[int, int],
    last_step: int | None,
    updated: Mapping[int, frozenset[int]],
    collector: Collector,
) -> None:
    """Judge that a rank reports to the SDK after the recovery the same as behind each step before the fault."""
    first, last = acts
    for kind, words in _REPORTS.items():
        habits = {old.rank: _has_done(old, kind, first) for old, _ in pairs}
        due = {
            old.rank: updated.get(old.rank, frozenset()) if reports_each_step(old, kind, first) else frozenset()
            for old, _ in pairs
        }
        if any(habits.values()):
            since = {new: steps_since(new, last, last_step) for _, new in pairs}
            _judge_report(kind, words, habits, since, due, collector)


def _judge_owed(plan: Plan, pairs: list[tuple[Process, Process]], first: int, collector: Collector) -> None:
    """Judge that some rank has reported an update before the fault, where the mechanism rests on these reports."""
    if any(_has_done(old, REPORTED, first) for old, _ in pairs):
        return
    for old, _ in pairs:
        if owes_reports(plan, old, first):
            observation = f"rank {old.rank} is not recorded to have reported an update before the fault"
            collector.unknown(EXPECTED, observation, old.start.source, data=about(old.rank))


def _judge_report(
    kind: str,
    words: str,
    habits: Mapping[int, bool | None],
    since: Mapping[Process, list[tuple[int, set[str]]]],
    due: Mapping[int, frozenset[int]],
    collector: Collector,
) -> None:
    """Judge the reports of one kind. A step that no rank reports has overflowed, unless this is true of every step.

    Nor has a step overflowed that is ``due``: it has changed the moments of a rank that reported each step before.
    """
    known = {step for steps in since.values() for step, reports in steps if kind in reports}
    for process, steps in since.items():
        asked = known | due[process.rank]
        missed = [step for step, reports in steps if kind not in reports and (step in asked or not known)]
        where = places([process.last_step] if process.last_step is not None else [])
        if habits[process.rank] is False:
            observation = f"rank {process.rank} is not recorded to have {words} a step before the fault, as others are"
            collector.unknown(EXPECTED, observation, process.start.source, data=about(process.rank))
        elif habits[process.rank] and missed:
            observation = f"rank {process.rank} has not {words} step {text_list(missed)}, as it did before the fault"
            collector.fail(EXPECTED, observation, *where, data=about(process.rank, step=missed[0]))


def _has_done(process: Process, kind: str, first: int) -> bool | None:
    """Return whether the report followed a step before the fault; None where the process ended no step.

    The last step does not count: the fault may have come between step and report.
    """
    followed = [kind in reports for _, reports in steps_before(process, first)[:-1]]
    return any(followed) if followed else None
