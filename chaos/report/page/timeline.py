"""The timeline: the rows of the ranks, and what the harness and the SDK's controller did beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from chaos.checks.judge import Judgement
from chaos.evidence.logged import logged
from chaos.history.event import Event
from chaos.report.page.model import Mark, Row, Timeline
from chaos.report.page.moments import Clock, in_words
from chaos.report.page.planned_faults import planned_fault
from chaos.report.page.processes import process_of
from chaos.report.page.recoveries import Measured, bands, noticed
from chaos.report.page.sdk_states import sdk_states

MOST_BLOCKS = 120_000
"""Blocks of steps on a page, of all processes."""
_FEWEST = 60
"""Blocks of a process, however many processes there are."""

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
"""Moments of the harness by their events."""


def timeline(judgement: Judgement, measured: Sequence[Measured], clock: Clock) -> Timeline:
    """Return the rows by rank, the harness's moments, the faults as planned and landed, and the recoveries' phases."""
    history = judgement.history
    seen = noticed(measured, clock)
    return Timeline(
        tuple(_rows(judgement, clock)),
        tuple(sorted((*_moments(history.events, clock), *_detections(seen)), key=lambda mark: mark.t)),
        tuple(planned_fault(fault, history, seen, clock) for fault in judgement.plan.faults),
        tuple(bands(measured, clock)),
        sdk_states(history, judgement.artifacts, clock),
    )


def _rows(judgement: Judgement, clock: Clock) -> Iterator[Row]:
    plan, history = judgement.plan, judgement.history
    processes: dict[int, dict[tuple[str, int], list[Event]]] = defaultdict(lambda: defaultdict(list))
    for event in history.events:
        rank, pid = event.rank, event.pid
        if rank is not None and pid is not None and 0 <= rank < plan.layout.ranks:
            processes[rank][event.attempt or "", pid].append(event)
    moments = sorted(clock.seconds(event.mono) for event in history.select("fault.landed"))
    most = max(_FEWEST, MOST_BLOCKS // max(1, sum(map(len, processes.values()))))
    groups = {rank: number for number, group in enumerate(plan.layout.replica_groups) for rank in group}
    per_node = max(1, -(-plan.layout.ranks // max(1, plan.layout.nodes)))
    printed = logged(plan, history, judgement.artifacts).ranks
    for rank in range(plan.layout.ranks):
        launches = printed[rank].launches if rank in printed else {}
        of_rank = (
            process_of(*key, events, launches.get(key[0]), most, moments, clock)
            for key, events in processes[rank].items()
        )
        shown = tuple(sorted(of_rank, key=lambda process: process.begin))
        yield Row(f"rank {rank}", rank, rank // per_node, groups.get(rank), shown)


def _moments(events: Sequence[Event], clock: Clock) -> Iterator[Mark]:
    for event in events:
        kind = _HARNESS.get(event.event)
        if kind is not None and event.writer == "harness":
            yield Mark(clock.seconds(event.mono), kind, in_words(event, attempt=True))


def _detections(noticed: dict[str, float]) -> Iterator[Mark]:
    """Yield when faults were noticed, each moment once: several faults may be noticed together."""
    faults: dict[float, list[str]] = defaultdict(list)
    for fault, at in noticed.items():
        faults[at].append(fault)
    for at, names in faults.items():
        yield Mark(at, "detection", f"noticed: {', '.join(names)}")
