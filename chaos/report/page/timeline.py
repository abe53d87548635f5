"""The timeline: each process of each rank with its steps, what lasted in it, and its moments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from chaos.checks.recovery.measured import Recovery
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.facts import exit_status, ranks_text
from chaos.evidence.logged import Launch, logged
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.plan.model import Plan
from chaos.plan.parts.fault import PlannedFault
from chaos.report.page.model import Band, Mark, Process, Row, Span, Timeline
from chaos.report.page.model import PlannedFault as FaultMark
from chaos.report.page.moments import Clock, in_words, step_in, whole
from chaos.report.page.step_blocks import Step, blocks

MOST_BLOCKS = 120_000
"""Blocks of steps on a page, of all processes."""
_FEWEST = 60
"""Blocks of a process, however many processes there are."""

_SPANS = {
    "checkpoint": ("checkpoint.begin", "checkpoint.end", "save"),
    "load": ("load.begin", "load.end", "load"),
    "handler": ("handler.enter", "handler.exit", "handler"),
    "pause": ("pause.enter", "pause.exit", "held"),
    "barrier": ("barrier.reached", "barrier.released", "held"),
}
"""Two events that begin and end something, and its kind on the page."""

_UNHELD = {"barrier": ("step.begin", "step.end")}
"""Events after which something has ended too: a rank that goes on with its training is not held any more."""

_MARKS = {
    "error.uncaught": "error",
    "error.reported": "error",
    "fault.raised": "fault",
    "fault.acting": "fault",
    "fault.slowed": "fault",
    "fault.device": "fault",
    "train.begin": "train",
    "train.end": "train",
    "train.joins": "train",
    "graph.compiled": "train",
    "initial": "train",
    "communicator.joined": "train",
    "checkpoint.read": "train",
}
"""Moments of a rank by their events; the SDK's are added by the beginning of their names."""

_HARNESS = {
    "attempt.start": "launch",
    "attempt.end": "launch",
    "launcher.exit": "exit",
    "fault.injecting": "fault",
    "fault.landed": "fault",
    "fault.healed": "heal",
    "undo.failed": "heal",
    "resume.refused": "launch",
    "job.failed": "error",
    "host.lost": "fault",
    "host.rebooted": "fault",
    "host.vanished": "fault",
    "ranks.placed": "launch",
}


def timeline(plan: Plan, history: History, artifacts: Artifacts, recovery: Recovery, clock: Clock) -> Timeline:
    """Return the rows by rank, the harness's moments, the faults as planned and landed, and the recovery's phases."""
    processes: dict[int, dict[tuple[str, int], list[Event]]] = defaultdict(lambda: defaultdict(list))
    for event in history.events:
        rank, pid = event.rank, event.pid
        if rank is not None and pid is not None and 0 <= rank < plan.layout.ranks:
            processes[rank][event.attempt or "", pid].append(event)
    moments = sorted(clock.seconds(event.mono) for event in history.select("fault.landed"))
    most = max(_FEWEST, MOST_BLOCKS // max(1, sum(map(len, processes.values()))))
    groups = {rank: number for number, group in enumerate(plan.layout.replica_groups) for rank in group}
    per_node = max(1, -(-plan.layout.ranks // max(1, plan.layout.nodes)))
    printed = logged(plan, history, artifacts).ranks
    rows = []
    for rank in range(plan.layout.ranks):
        launches = printed[rank].launches if rank in printed else {}
        of_rank = (
            _process(*key, events, launches.get(key[0]), most, moments, clock)
            for key, events in processes[rank].items()
        )
        shown = tuple(sorted(of_rank, key=lambda process: process.begin))
        rows.append(Row(f"rank {rank}", rank, rank // per_node, groups.get(rank), shown))
    return Timeline(
        tuple(rows),
        tuple(_moments(history.events, _HARNESS, clock, ranks=False)),
        tuple(_planned(fault, history, clock) for fault in plan.faults),
        tuple(_bands(recovery, clock)),
    )


def _process(
    attempt: str,
    pid: int,
    events: Sequence[Event],
    printed: Launch | None,
    most: int,
    moments: Sequence[float],
    clock: Clock,
) -> Process:
    ends = [event for event in events if event.event == "rank.exit"]
    recorded = [event for event in events if event.writer != "harness"] or list(events)
    begin, end = clock.seconds(recorded[0].mono), clock.seconds((ends or recorded)[-1].mono)
    spans = list(_spans(recorded, end, clock))
    training = next((event for event in recorded if event.event == "train.begin"), None)
    if training is not None:
        spans.insert(0, Span("start", begin, clock.seconds(training.mono), "from the process's start to its training"))
    marks = [*_moments(recorded, _MARKS, clock, ranks=True)]
    marks += [Mark(clock.seconds(event.mono), "exit", f"{exit_status(event)} ({event.source})") for event in ends]
    exit_text = exit_status(ends[-1]) if ends else None
    steps = blocks(list(_steps(recorded, clock)), most, moments)
    if not steps and printed is not None and printed.first is not None and printed.last is not None:
        # Only its log has its steps: their numbers, without times.
        since = begin if training is None else clock.seconds(training.mono)
        steps = ((printed.first.step, printed.last.step, since, max(since, end)),)
    return Process(attempt, pid, begin, max(begin, end), exit_text, steps, tuple(spans), tuple(marks))


def _steps(events: Iterable[Event], clock: Clock) -> Iterator[Step]:
    """Yield the steps that a process has ended, and last the one that it was in when its record stops."""
    begun: tuple[int, float] | None = None
    last = 0.0
    for event in events:
        if event.event not in ("step.begin", "step.end"):
            last = clock.seconds(event.mono)
            continue
        step, now = step_in(event), clock.seconds(event.mono)
        last = now
        if step is None:
            continue
        if event.event == "step.begin":
            if begun is not None:
                yield begun[0], begun[1], now
            begun = step, now
        elif begun is not None and begun[0] == step:
            yield step, begun[1], now
            begun = None
    if begun is not None:
        yield begun[0], begun[1], max(begun[1], last)


def _spans(events: Iterable[Event], end: float, clock: Clock) -> Iterator[Span]:
    begun: dict[str, Event] = {}
    for event in events:
        for name, (first, last, kind) in _SPANS.items():
            if event.event == first:
                begun[name] = event
            elif name in begun and event.event in (last, *_UNHELD.get(name, ())):
                start = begun.pop(name)
                yield Span(kind, clock.seconds(start.mono), clock.seconds(event.mono), in_words(start))
    for name, start in begun.items():
        since = clock.seconds(start.mono)
        yield Span(_SPANS[name][2], since, max(since, end), f"{in_words(start)}; its end is not recorded")


def _moments(events: Iterable[Event], kinds: dict[str, str], clock: Clock, *, ranks: bool) -> Iterator[Mark]:
    for event in events:
        kind = kinds.get(event.event)
        if kind is None and ranks and event.event.startswith("sdk."):
            kind = "sdk"
        if kind is not None and (ranks or event.writer == "harness"):
            yield Mark(clock.seconds(event.mono), kind, in_words(event))


def planned_text(fault: PlannedFault) -> str:
    """Return a planned fault in words: its kind, its ranks or role, and its trigger."""
    target = fault.role or (ranks_text(fault.ranks) if fault.ranks else "the job")
    trigger = ", ".join(f"{key} {value}" for key, value in fault.trigger.items())
    return f"{fault.kind} {target}, {trigger}" if trigger else f"{fault.kind} {target}"


def _planned(fault: PlannedFault, history: History, clock: Clock) -> FaultMark:
    landed = history.first("fault.landed", fault=fault.id)
    landing = None
    if landed is not None:
        step = landed.data.get("step")
        where = f"in step {step}" if whole(step) is not None else "at no recorded step"
        phase = f", {landed.data['phase']}" if isinstance(landed.data.get("phase"), str) else ""
        landing = f"landed {where}{phase}, {clock.seconds(landed.mono):.3f} s after the run's start ({landed.source})"
    acted = history.first("fault.injecting", fault=fault.id) or landed
    step, phase_name = whole(fault.trigger.get("step")), fault.trigger.get("phase")
    return FaultMark(
        None if acted is None else clock.seconds(acted.mono),
        fault.kind,
        step,
        phase_name if isinstance(phase_name, str) else None,
        fault.ranks,
        planned_text(fault),
        landing,
    )


def _bands(recovery: Recovery, clock: Clock) -> Iterator[Band]:
    for phase in recovery.phases:
        if phase.nanoseconds is not None:
            yield Band(phase.name, clock.seconds(phase.begin), clock.seconds(phase.begin + phase.nanoseconds))
