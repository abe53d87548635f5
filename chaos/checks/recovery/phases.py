"""The recovery, split into phases. Each phase ends where the next one begins, so the parts add up to the total."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from chaos.checks.recovery.measured import Phase, Recovery
from chaos.evidence.acted import TRE, TTP, mechanisms
from chaos.evidence.artifacts import Artifacts
from chaos.evidence.clock import ClockError, LogClock, log_clock
from chaos.evidence.facts import RESUME, TRAIN, by_rank, step_of, steps
from chaos.evidence.given import given_theirs
from chaos.evidence.moment import Moment, earliest, latest
from chaos.evidence.on_node import ENDS_LATER, ended_at, is_silenced
from chaos.evidence.recoveries import NotTold, Span, spans
from chaos.faults.pause.proof import Halt, halts
from chaos.history.event import Event
from chaos.history.reader import History
from chaos.mechanisms.rsc.phases import phase_ends as restart_ends
from chaos.mechanisms.rsc.phases import started_again
from chaos.mechanisms.tre.phases import phase_ends
from chaos.observe.logs.log_event import LogEvent
from chaos.plan.model import PHASES, Plan

SLACK_NS = 1_000_000
"""A log's time and a history's time of two moments that follow at once may be in the wrong order by this much."""

ONLINE = ("UCE", "HCCE")
RSC = "RSC"
_BEFORE_RESTART = ("detection", "stop", "save", "exit")


class MarkerError(Exception):
    """The end of a phase cannot be told. The text says what is missing."""


@dataclass
class _Run:
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

    def logged(self, test: Callable[[LogEvent], bool], what: str, after: int) -> Moment:
        """The first log line of a kind that is not from before ``after``."""
        clock = self.clock()
        try:
            times = [Moment.of(clock.placed(one)) for one in self.artifacts.sdk_events(TRAIN) if test(one)]
        except ClockError as error:
            raise MarkerError(str(error)) from error
        later = [moment for moment in times if moment.mono >= after - SLACK_NS - moment.error]
        if times and not later:
            raise MarkerError(f"{what} is logged before the fault: {times[0].where}")
        if not later:
            raise MarkerError(f"{what} is not in the SDK's logs")
        return replace(earliest(sorted(later, key=lambda one: one.where)), by_log=True)


def measure(plan: Plan, history: History, artifacts: Artifacts) -> Recovery:
    """Measure the recovery that decides, the last one, from its first fault on.

    Nothing raises: what cannot be told is None with its reason.
    """
    if plan.mechanism not in PHASES:
        return Recovery(None, reason="no mechanism with measured phases is planned")
    run = _Run(plan, history, artifacts)
    acts = history.select("fault.injecting")
    if not acts:
        return Recovery(None, _unknown_phases(plan, "no fault was injected"), None, "no fault was injected")
    signs = set(mechanisms(history, artifacts, TRAIN).evidence)
    signs -= {"online repair"} if "ARF" in signs else set()  # ARF cleans and copies, too
    acted = ", ".join(_named(history, sign) if plan.mechanism in ONLINE else sign for sign in sorted(signs)) or None
    if acted is None and plan.mechanism == RSC and started_again(history):
        acted = RSC  # the SDK has no part in it, so neither handlers nor its log tell of it
    try:
        start = _begin(history, spans(plan, history)[-1])
    except NotTold as reason:
        return Recovery(None, _unknown_phases(plan, str(reason)), None, str(reason))
    try:
        begin = _hit(history, next(one for one in acts if one.mono >= start))
    except NotTold as reason:
        return Recovery(None, _unknown_phases(plan, str(reason)), None, str(reason))
    return _assemble(acted, begin, list(_ends(run, begin)))


def _begin(history: History, span: Span) -> int:
    """The act of the first fault that the recovery answers; one that was tried before it may have answered another."""
    own = () if span.recovery is None else span.recovery.faults
    acts = [one.mono for name in own for one in history.select("fault.injecting", fault=name)]
    return min(acts, default=span.begin)


def _hit(history: History, act: Event) -> Moment:
    """When the act hit its ranks: at once, but for one that gives them a grace time."""
    if act.data.get("kind") not in ENDS_LATER:
        return Moment.of(act)
    landings = history.select("fault.landed", fault=act.data.get("fault"))
    end = ended_at(landings[0]) if landings else None
    if end is None or not act.mono <= end <= landings[0].mono:
        raise NotTold(f"nothing tells when the node ended that fault {act.data.get('fault')} has stopped")
    return Moment(end, landings[0].source)


def phase_names(plan: Plan) -> tuple[str, ...]:
    """The phases that this plan's recovery has: without a resume it ends with the job."""
    if plan.mechanism is not None and plan.mechanism in PHASES and plan.mechanism != TTP:
        return PHASES[plan.mechanism]
    return PHASES[TTP] if plan.resumes else _BEFORE_RESTART


def _named(history: History, sign: str) -> str:
    """What to call a mechanism that acted: of the two online repairs only UCE copies parameters."""
    if sign != "online repair":
        return sign
    return "UCE" if history.first("handler.enter", attempt=TRAIN, name="repair") else "HCCE"


def _unknown_phases(plan: Plan, reason: str) -> tuple[Phase, ...]:
    return tuple(Phase(name, None, reason) for name in phase_names(plan))


def _ends(run: _Run, begin: Moment) -> Iterator[tuple[str, Moment | str]]:
    """The end of each phase, or why it is not known."""
    if run.plan.mechanism == RSC:
        for name, end in restart_ends(run.plan, run.history, begin.mono):
            yield name, end
        return
    markers: dict[str, Callable[[_Run, int], Moment]] = {
        "detection": _noticed,
        "stop": _save_began,
        "save": _renamed,
        "exit": _exited,
        "relaunch": _relaunched,
        "load": _loaded,
        "compile": _first_begun,
        "first step": _first_ended,
        "caught up": _caught_up,
    }
    if run.plan.mechanism == TRE:
        for name, end in phase_ends(run.plan, run.history, begin.mono):
            yield name, end
        return
    if run.plan.mechanism == "TSP":
        markers |= {"stop": _paused, "pause": _told_to_go_on, "first step": _first_after_pause}
    elif run.plan.mechanism in (*ONLINE, "ARF"):
        markers |= {"stop": _cleaned, "repair": _repaired, "first step": _first_replayed}
        markers |= {"restart": partial(_called, "rebuild_group"), "rebuild": partial(_called, "repair")}
    for name in phase_names(run.plan):
        try:
            yield name, markers[name](run, begin.mono)
        except MarkerError as error:
            yield name, str(error)


def _assemble(mechanism: str | None, begin: Moment, ends: list[tuple[str, Moment | str]]) -> Recovery:
    phases: list[Phase] = []
    before: Moment | str = begin
    for name, end in ends:
        if isinstance(end, Moment) and isinstance(before, Moment):
            if end.mono < before.mono - SLACK_NS - end.may_be_off(before):
                early = (before.mono - end.mono) / 1e9
                end = f"its end ({end.where}) is {early:.3f} s before its beginning ({before.where})"
            elif end.mono < before.mono:
                end = replace(end, mono=before.mono)
        if isinstance(end, Moment) and isinstance(before, Moment):
            where, by_log = (before.where, end.where), before.by_log or end.by_log
            error = end.may_be_off(before)
            phases.append(Phase(name, end.mono - before.mono, "", where, error, before.mono, by_log))
        else:
            reason = end if isinstance(end, str) else f"its beginning is not known: {before}"
            phases.append(Phase(name, None, reason))
        before = end
    if isinstance(before, str):
        return Recovery(mechanism, tuple(phases), None, before)
    total, error = before.mono - begin.mono, before.may_be_off(begin)
    return Recovery(mechanism, tuple(phases), total, "", error, begin.mono, before.by_log)


def _first_of(events: list[Event], after: int, what: str) -> Moment:
    later = [one for one in events if one.mono >= after]
    if not later:
        raise MarkerError(f"{what} is not in the history")
    return earliest(map(Moment.of, later))


def _last_of_ranks(run: _Run, events: list[Event], what: str, ranks: int) -> Moment:
    """The moment by which every rank has its first such event."""
    firsts: dict[int | None, Event] = {}
    for one in events:
        firsts.setdefault(one.rank, one)
    if len(firsts) < ranks:
        raise MarkerError(f"{what} is recorded for {len(firsts)} of {ranks} ranks")
    return latest(map(Moment.of, firsts.values()))


def _noticed(run: _Run, after: int) -> Moment:
    def abnormal(event: LogEvent) -> bool:
        return event.kind == "ttp.state" and event.fields.get("state") == "ABNORMAL"

    return run.logged(abnormal, "the controller's change to ABNORMAL", after)


def _state(run: _Run, state: str, after: int) -> Moment:
    def reached(event: LogEvent) -> bool:
        return event.kind == "ttp.state" and event.fields.get("state") == state

    return run.logged(reached, f"the controller's change to {state}", after)


def _cleaned(run: _Run, after: int) -> Moment:
    """All ranks are stopped and clean: the controller goes on to the repair."""
    noticed = _noticed(run, after).mono
    try:
        return _state(run, "REPAIR", noticed)
    except MarkerError:
        end = "the end of stop and clean on all ranks"
        return run.logged(lambda event: event.kind == "ttp.env_cleared", end, noticed)


def _repaired(run: _Run, after: int) -> Moment:
    return _state(run, "NORMAL", _cleaned(run, after).mono)


def _called(name: str, run: _Run, after: int) -> Moment:
    calls = run.history.select("handler.enter", attempt=TRAIN, name=name)
    return _first_of(calls, after, f"a call of handler {name} after the fault")


def _first_replayed(run: _Run, after: int) -> Moment:
    """Every rank has ended a step that it began after the repair."""
    normal = _repaired(run, after)
    ends: list[Event] = []
    ended = by_rank(run.history, "step.end", TRAIN)
    for rank, begins in by_rank(run.history, "train.begin", TRAIN).items():
        again = next((one.mono for one in begins if one.mono > after), None)
        ends.extend([one for one in ended.get(rank, []) if again is not None and one.mono > again][:1])
    last = _last_of_ranks(run, ends, "the end of a step after the repair", run.plan.ranks)
    # A rank may have been told, and be quick, before the controller writes its own line.
    return last if last.mono > normal.mono else replace(latest((last, normal)), where=last.where)


def _stops(run: _Run, after: int) -> list[Halt]:
    """The first stop of each rank since the pause was asked for."""
    own = [[one for one in halts(run.history, rank) if one.noticed.mono >= after] for rank in range(run.plan.ranks)]
    if not all(own):
        raise MarkerError(f"a pause is recorded for {sum(map(bool, own))} of {run.plan.ranks} ranks")
    return [stops[0] for stops in own]


def _paused(run: _Run, after: int) -> Moment:
    return latest(Moment.of(one.noticed) for one in _stops(run, after))


def _told_to_go_on(run: _Run, after: int) -> Moment:
    orders = run.history.select("fault.ending")
    return _first_of(orders, _paused(run, after).mono, "the order to go on")


def _first_after_pause(run: _Run, after: int) -> Moment:
    order = _told_to_go_on(run, after).mono
    ended = by_rank(run.history, "step.end", TRAIN)
    ends = [one for own in ended.values() for one in [later for later in own if later.mono >= order][:1]]
    return _last_of_ranks(run, ends, "the end of a step after the pause", run.plan.ranks)


def _save_began(run: _Run, after: int) -> Moment:
    saves = run.history.select("handler.enter", attempt=TRAIN, name="save_ckpt")
    saves += run.history.select("checkpoint.begin", attempt=TRAIN, kind="end-of-life")
    if saves:
        return _first_of(sorted(saves, key=lambda one: one.mono), after, "the beginning of a save after the fault")
    return run.logged(lambda event: event.kind == "ttp.dump_begin", "the beginning of a save", after)


def _renamed(run: _Run, after: int) -> Moment:
    renames = run.history.select("handler.exit", attempt=TRAIN, name="rename")
    if renames:
        return _first_of(renames, after, "the end of the rename after the fault")
    return run.logged(lambda event: event.kind == "ttp.renamed", "the end of the rename", after)


def _exited(run: _Run, after: int) -> Moment:
    # A suspended rank ends when the teardown ends it, which is no part of the recovery.
    suspended = {rank for fault in run.plan.faults if is_silenced(fault) for rank in fault.ranks}
    exits = [one for one in run.history.select("rank.exit", attempt=TRAIN) if one.rank not in suspended]
    seen, wanted = {one.rank for one in exits}, set(range(run.plan.ranks)) - suspended
    if not exits or not wanted <= seen:
        raise MarkerError(f"{len(seen & wanted)} of {len(wanted)} exits are recorded")
    return latest(map(Moment.of, exits))


def _relaunched(run: _Run, after: int) -> Moment:
    """The last rank begins to load: its process runs and the framework is there. Without a load, the process runs."""
    starts = run.history.select("agent.start", attempt=RESUME)
    started = _last_of_ranks(run, starts, "the start in attempt resume", run.plan.ranks)
    loads = run.history.select("load.begin", attempt=RESUME)
    if len({one.rank for one in loads}) < run.plan.ranks:
        return started
    return _last_of_ranks(run, loads, "the beginning of the load", run.plan.ranks)


def _loaded(run: _Run, after: int) -> Moment:
    ends = run.history.select("load.end", attempt=RESUME)
    given = given_theirs(run.plan, [*run.history.select("load.begin", attempt=RESUME), *ends])
    last = {one.rank for one in ends} | set(given)
    if len(last) < run.plan.ranks:
        raise MarkerError(f"the end of the load is recorded for {len(last)} of {run.plan.ranks} ranks")
    return latest(map(Moment.of, ends))


def _first_begun(run: _Run, after: int) -> Moment:
    """The last rank begins its first step; where graphs are compiled in that step, the last of them is ready."""
    begins = run.history.select("step.begin", attempt=RESUME)
    begun = _last_of_ranks(run, begins, "the first step after the resume", run.plan.ranks)
    ends = {rank: events[0].mono for rank, events in by_rank(run.history, "step.end", RESUME).items()}
    ready = [
        one
        for rank, events in by_rank(run.history, "graph.compiled", RESUME).items()
        for one in events
        if one.mono <= ends.get(rank, 0)
    ]
    return latest((begun, *map(Moment.of, ready)))


def _first_ended(run: _Run, after: int) -> Moment:
    ends = run.history.select("step.end", attempt=RESUME)
    return _last_of_ranks(run, ends, "the end of the first step after the resume", run.plan.ranks)


def _caught_up(run: _Run, after: int) -> Moment:
    """Every rank has ended the highest step that the fault interrupted: nothing is lost any more."""
    begun = [max(own) for own in steps(run.history, "step.begin", TRAIN).values() if own]
    if not begun:
        raise MarkerError("no step of the faulted launch is recorded")
    goal = max(begun)
    first = _first_ended(run, after)
    ends = [one for one in run.history.select("step.end", attempt=RESUME) if step_of(one) >= goal]
    reached = _last_of_ranks(run, ends, f"step {goal}, which the fault interrupted,", run.plan.ranks)
    return latest((first, reached))
