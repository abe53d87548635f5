"""The protection of each process of a rank, by its agent's record. Facts only; nothing here judges."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from chaos.evidence.facts import step_of
from chaos.history.event import Event
from chaos.history.reader import History

REGISTERED = "sdk.registered"
CONTROLLER = "sdk.controller"
"""Recorded by a rank that has started the SDK's controller in itself."""

CONNECTED, DISCONNECTED = "sdk.connected", "sdk.disconnected"
REPORTED, PAUSED = "update.reported", "pause.enter"
"""The reports of a rank to the SDK about each step: its update is over, and it could be paused behind it."""

_STEPS = ("train.begin", "step.begin", "step.end")


@dataclass(eq=False)
class Process:
    """One process of a rank: its handlers, its connection to the SDK, its steps and its reports to the SDK about them.

    ``handlers`` has the registrations of each name. ``steps`` are the steps that it ended since its training began for
    the last time, and ``earlier`` the steps before, each with the names of its reports.
    """

    rank: int
    pid: int
    start: Event
    handlers: dict[str, list[Event]] = field(default_factory=dict)
    connections: list[Event] = field(default_factory=list)
    steps: list[tuple[Event, set[str]]] = field(default_factory=list)
    earlier: list[tuple[Event, set[str]]] = field(default_factory=list)
    trained: bool = False

    @property
    def has_connected(self) -> bool:
        """Whether it has ever connected to the SDK."""
        return any(event.event == CONNECTED for event in self.connections)

    @property
    def last_step(self) -> Event | None:
        """The end of the last step that it ended."""
        ended = self.steps or self.earlier
        return ended[-1][0] if ended else None

    def handlers_before(self, until: int) -> dict[str, Event]:
        """Return the handler of each name that it had registered last before a time."""
        registered = {name: [event for event in events if event.mono < until] for name, events in self.handlers.items()}
        return {name: events[-1] for name, events in registered.items() if events}

    def disconnection(self) -> Event | None:
        """Return the record of its leaving the SDK before its last step, without a new connection before the step."""
        last = self.last_step
        before = [event for event in self.connections if last is None or event.seq < last.seq]
        return before[-1] if before and before[-1].event == DISCONNECTED else None


def processes_of(history: History, attempt: str) -> dict[int, list[Process]]:
    """Return the processes of each rank in a launch, in the order in which they began."""
    known: dict[tuple[int, int], Process] = {}
    for event in history.select("agent.start", attempt=attempt):
        if event.rank is not None and event.pid is not None:
            known[event.rank, event.pid] = Process(event.rank, event.pid, event)
    for event in _in_order(history, attempt, REGISTERED, CONNECTED, DISCONNECTED):
        process = known.get((event.rank or 0, event.pid or 0))
        if process is None:
            continue
        if event.event == REGISTERED:
            process.handlers.setdefault(str(event.data.get("name")), []).append(event)
        else:
            process.connections.append(event)
    for key, events in _by_process(_in_order(history, attempt, *_STEPS, REPORTED, PAUSED)).items():
        if key in known:
            _read_steps(known[key], events)
    by_rank: dict[int, list[Process]] = defaultdict(list)
    for process in sorted(known.values(), key=lambda known_process: known_process.start.mono):
        by_rank[process.rank].append(process)
    return dict(sorted(by_rank.items()))


def _read_steps(process: Process, events: list[Event]) -> None:
    reports: set[str] = set()
    begun: Event | None = None
    for event in events:
        if event.event == "train.begin":
            process.earlier += process.steps
            process.steps = []
        elif event.event == "step.begin":
            process.trained, reports, begun = True, set(), event
        elif event.event == "step.end":
            reports, begun = reports if begun is not None else set(), None
            process.steps.append((event, reports))
        elif begun is None or event.data.get("step") == step_of(begun):  # PyTorch's optimizer reports within its step
            reports.add(event.event)


def steps_before(process: Process, until: int) -> list[tuple[int, set[str]]]:
    """Return the steps that it ended before a time, each with its reports to the SDK."""
    return [(step_of(event), reports) for event, reports in (*process.earlier, *process.steps) if event.mono < until]


def steps_since(process: Process, since: int, last_step: int | None) -> list[tuple[int, set[str]]]:
    """Return the steps of its last training that it ended after a time, each with its reports to the SDK.

    The last one counts only where it is ``last_step``, the last of the training: the process may have been broken off
    behind it.
    """
    steps = [(step_of(event), reports) for event, reports in process.steps if event.mono > since]
    return steps if steps and steps[-1][0] == last_step else steps[:-1]


def _in_order(history: History, attempt: str, *names: str) -> list[Event]:
    return sorted(
        (event for name in names for event in history.select(name, attempt=attempt)), key=lambda event: event.seq
    )


def _by_process(events: list[Event]) -> dict[tuple[int | None, int | None], list[Event]]:
    by_process: dict[tuple[int | None, int | None], list[Event]] = defaultdict(list)
    for event in events:
        by_process[event.rank, event.pid].append(event)
    return by_process
