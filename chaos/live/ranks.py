"""The state of each rank in the present launch, by the events of the history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from chaos.evidence.facts import exit_status
from chaos.evidence.text import readable
from chaos.history.event import Event

_HANDLERS: Mapping[str, str] = MappingProxyType(
    {
        "save_ckpt": "saving",
        "rename": "saving",
        "stop": "stopped",
        "clean": "stopped",
        "exit": "stopped",
        "pause": "stopped",
    }
)
"""The state of a rank in a handler of the SDK; any other handler repairs something."""

_STATES: Mapping[str, str] = MappingProxyType(
    {
        "rank.found": "starting",
        "agent.start": "starting",
        "load.begin": "loading",
        "load.end": "starting",
        "train.begin": "training",
        "train.joins": "starting",
        "step.begin": "training",
        "step.end": "training",
        "train.end": "trained",
        "barrier.reached": "held",
        "barrier.released": "training",
        "pause.enter": "stopped",
        "pause.exit": "training",
        "checkpoint.begin": "saving",
        "fault.injecting": "faulted",
        "fault.acting": "faulted",
        "fault.raised": "faulted",
        "fault.device": "faulted",
        "error.uncaught": "faulted",
        "error.reported": "faulted",
    }
)
"""The state in which an event puts its rank."""

_BEFORE_TRAINING = ("not started", "starting", "loading")
_LONGEST = 80


@dataclass
class Process:
    """A rank as far as its record goes. ``mono`` is the time of its present state."""

    rank: int
    attempt: str = ""
    state: str = "not started"
    mono: int | None = None
    detail: str = ""
    pid: int | None = None
    step: int | None = None
    loss: tuple[int, float] | None = None
    exit: Event | None = None
    pids: set[int] = field(default_factory=set)
    _before: str = "training"

    def take(self, event: Event) -> None:
        """Take in an event of this rank."""
        if event.pid is not None and event.event in ("rank.found", "agent.start", "writer.start"):
            self._started(event.pid)
        if event.event == "rank.exit":
            self._ended(event)
        elif event.pid is None or self.exit is None or self.exit.pid != event.pid:
            # What a process has recorded before its end may be read after it.
            self._goes_on(event)
        if event.event in ("step.begin", "train.begin", "digest"):
            self._count(event)

    def _started(self, pid: int) -> None:
        if pid in self.pids:
            return
        self.pids.add(pid)
        if self.pid is not None and self.pid != pid:
            self.exit, self.state, self.detail = None, "starting", ""
        self.pid = pid

    def _ended(self, event: Event) -> None:
        if event.pid not in (None, self.pid) and self.pid is not None:
            return  # an earlier process, which has been replaced
        self.exit = event
        self._enter("ended", event, exit_status(event))

    def _goes_on(self, event: Event) -> None:
        name = str(event.data.get("name", ""))
        match event.event:
            case "handler.enter":
                self._enter(_HANDLERS.get(name, "repairing"), event, f"handler {name}")
            case "handler.exit":
                self._enter(_HANDLERS.get(name, "repairing"), event, f"after handler {name}")
            case "checkpoint.begin":
                self._before = self.state
                self._enter("saving", event, f"{event.data.get('kind')} checkpoint")
            case "checkpoint.end":
                self._enter(self._before, event, "")
            case known if known in _STATES:
                if known == "rank.found" and self.state not in _BEFORE_TRAINING:
                    return  # its own record was read first
                self._enter(_STATES[known], event, _detail(event))

    def _enter(self, state: str, event: Event, detail: str) -> None:
        if state != self.state:
            self.mono = event.mono
        self.state, self.detail = state, readable(detail)[:_LONGEST]

    def _count(self, event: Event) -> None:
        step = event.data.get("initial_step" if event.event == "train.begin" else "step")
        if not isinstance(step, int) or isinstance(step, bool) or abs(step) >= 2**53:
            return
        if event.event != "digest":
            self.step = step
        elif (loss := number(event.data.get("loss"))) is not None:
            self.loss = (step, loss)


class Ranks:
    """The ranks of a launch; a new launch begins with none started."""

    def __init__(self, count: int) -> None:
        self.attempt = ""
        self.all = [Process(rank) for rank in range(count)]

    def take(self, event: Event) -> None:
        """Take in an event of the harness or of a rank."""
        if event.event == "attempt.start" and event.attempt:
            self.attempt = event.attempt
            self.all = [Process(rank, self.attempt) for rank in range(len(self.all))]
        elif event.event == "attempt.end":
            for process in self.all:
                if process.state == "not started":
                    process.state, process.mono = "not recorded", event.mono
        elif event.rank is not None and 0 <= event.rank < len(self.all) and event.attempt in (None, self.attempt):
            self.all[event.rank].take(event)

    def heal(self, event: Event, ranks: tuple[int, ...]) -> None:
        """Take in that a fault of these ranks is undone: a rank that lives trains on."""
        for rank in ranks:
            if 0 <= rank < len(self.all) and self.all[rank].state == "faulted":
                process = self.all[rank]
                process.state, process.detail, process.mono = "training", "", event.mono

    def where(self, test: Callable[[Process], bool]) -> list[int]:
        """Return the ranks that pass a test."""
        return [process.rank for process in self.all if test(process)]


def number(text: object) -> float | None:
    """Return a loss of the history as a number; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError):
        return None


def _detail(event: Event) -> str:
    data = event.data
    match event.event:
        case "barrier.reached":
            step = f" of step {data['step']}" if isinstance(data.get("step"), int) else ""
            return f"{data.get('phase')}{step}"
        case "train.begin":
            return "before its first step"
        case "train.joins":
            return "waits for the state of a replica"
        case "train.end":
            return "it has trained its last step"
        case "pause.enter":
            return "pause"
        case "error.uncaught" | "error.reported":
            return str(data.get("error", ""))
        case name if name.startswith("fault."):
            return f"fault {data.get('fault')}"
    return ""
