"""The ends of phases: the evidence in history and SDK log for the beginning or the end of an act in a launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from chaos.evidence.artifacts import Artifacts
from chaos.evidence.clock import ClockError, LogClock, log_clock
from chaos.evidence.facts import TRAIN
from chaos.evidence.timestamp import Timestamp, earliest, latest
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.model import Plan
from chaos.plan.phases import phase_names

SLACK_NS = 1_000_000
"""A log's time and a history's time of two moments in close succession may be in the wrong order by this much."""


class MarkerError(Exception):
    """The end of a phase cannot be determined. The text names the missing evidence."""


@dataclass
class Launch:
    """The facts about a run whose recovery is measured."""

    plan: Plan
    history: History
    artifacts: Artifacts
    _clock: LogClock | ClockError | None = field(default=None)

    def clock(self) -> LogClock:
        if self._clock is None:
            try:
                self._clock = log_clock(self.history, self.artifacts)
            except ClockError as error:
                self._clock = error
        if isinstance(self._clock, ClockError):
            raise MarkerError(str(self._clock))
        return self._clock

    def logged(self, test: Callable[[LogEvent], bool], what: str, after: int) -> Timestamp:
        """Return the first log line of a kind that is not from before ``after``."""
        clock = self.clock()
        try:
            times = [Timestamp.of(clock.placed(event)) for event in self.artifacts.sdk_events(TRAIN) if test(event)]
        except ClockError as error:
            raise MarkerError(str(error)) from error
        later = [moment for moment in times if moment.mono >= after - SLACK_NS - moment.error]
        if times and not later:
            raise MarkerError(f"{what} is logged before the fault: {times[0].where}")
        if not later:
            raise MarkerError(f"{what} is not in the SDK's logs")
        return replace(earliest(sorted(later, key=lambda moment: moment.where)), by_log=True)


Marker = Callable[[Launch, int], Timestamp]
"""The end of a phase in a recovery that began at a time. Raises MarkerError when it cannot be determined."""


def marked(markers: Mapping[str, Marker], launch: Launch, after: int) -> Iterator[tuple[str, Timestamp | str]]:
    """Yield the end of each phase that the plan has, or why it is not known."""
    for name in phase_names(launch.plan):
        try:
            yield name, markers[name](launch, after)
        except MarkerError as error:
            yield name, str(error)


def first_of(events: list[Event], after: int, what: str) -> Timestamp:
    """Return the first of the events that is not from before ``after``."""
    later = [event for event in events if event.mono >= after]
    if not later:
        raise MarkerError(f"{what} is not in the history")
    return earliest(map(Timestamp.of, later))


def last_of_ranks(launch: Launch, events: list[Event], what: str, ranks: int) -> Timestamp:
    """Return the moment by which every rank has its first such event."""
    firsts: dict[int | None, Event] = {}
    for event in events:
        firsts.setdefault(event.rank, event)
    if len(firsts) < ranks:
        raise MarkerError(f"{what} is recorded for {len(firsts)} of {ranks} ranks")
    return latest(map(Timestamp.of, firsts.values()))


def noticed(launch: Launch, after: int) -> Timestamp:
    """Return the moment at which the SDK's controller notices the fault."""

    def abnormal(event: LogEvent) -> bool:
        return event.kind == "ttp.state" and event.fields.get("state") == "ABNORMAL"

    return launch.logged(abnormal, "the controller's change to ABNORMAL", after)


def state_reached(launch: Launch, state: str, after: int) -> Timestamp:
    """Return the moment at which the SDK's controller changes to a state."""

    def reached(event: LogEvent) -> bool:
        return event.kind == "ttp.state" and event.fields.get("state") == state

    return launch.logged(reached, f"the controller's change to {state}", after)
