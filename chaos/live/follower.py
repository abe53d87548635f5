"""Follows a run by the files of its directory; no event is read twice, and nothing is written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from chaos.base.rank_sets import by_word, named
from chaos.evidence.facts import exit_status
from chaos.evidence.text import readable
from chaos.history.event import Event
from chaos.live.course import BASELINE, Course
from chaos.live.description import Described
from chaos.live.ends import JudgedEnds
from chaos.live.events import NewEvents
from chaos.live.faults import Faults
from chaos.live.groups import group_states, grouping, node_size
from chaos.live.kept import Kept
from chaos.live.losses import Losses
from chaos.live.ranks import Process, Ranks
from chaos.live.recovery import Recoveries
from chaos.live.state import BaselineMaker, CoreHolder, EndState, LiveState, LossState, RankState
from chaos.plan.model import Plan
from chaos.store.baselines import maker_of
from chaos.store.directory import RUN_FILE
from chaos.store.ownership import is_live

_ALIVE_SECONDS = 1.0
"""Seconds between two looks at the lock of the run."""
_MOST_WORDS = 3
_LONGEST = 200
_MOST_EVENTS = 100_000
"""Events that a look reads: who begins late to follow a long run with many ranks has millions before it."""


def follow(directory: Path) -> Follower:
    """Return the follower of the run in a directory, which need not be there yet."""
    return Follower(directory)


class Follower:
    """Follows one run. For one thread at a time; one follower serves all who look at the run."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._described = Described(directory)
        self._events = NewEvents(directory / "history")
        self._course = Course()
        self._job: _Job | None = None
        self._alive: tuple[float, bool | None] = (float("-inf"), None)
        self._failure = ""
        self._new: Iterator[Event] = iter(())
        self._behind = False

    def state(self, now: int | None = None, *, holders: tuple[CoreHolder, ...] = ()) -> LiveState:
        """Read what is new and return the state at ``now``, nanoseconds of the wall clock (default: this moment).

        ``holders`` have the cores that the run waits for, as the caller knows. Never raises: a run that cannot be
        followed any more, whatever its files hold, has a state that says so and nothing of the job.
        """
        if not self._failure:
            try:
                return self._state(now, holders)
            except Exception as error:  # events may be lost with it, so nothing later could be trusted
                self._failure = readable(f"the run cannot be followed: {type(error).__name__}: {error}")[:_LONGEST]
        return self._unfollowed(now)

    def _unfollowed(self, now: int | None) -> LiveState:
        verdict, alive = self._described.verdict, self._is_alive()
        stage = "ended" if verdict is not None else "broken off" if alive is False else "not followed"
        return LiveState(
            run=readable(self.directory.name),
            directory=str(self.directory),
            now=(time.time_ns() if now is None else now) / 1e9,
            alive=alive,
            stage=stage,
            verdict=verdict,
            problems=(self._failure,),
        )

    def _state(self, now: int | None, holders: tuple[CoreHolder, ...]) -> LiveState:
        run, plan = self._described.run, self._described.plan
        if plan is not None and (self._job is None or self._job.plan is not plan):
            self._job = _Job(plan, self.directory)
        if self._job is not None:
            self._read(self._job)
        course, wall = self._course, time.time_ns() if now is None else now
        seconds, verdict = wall / 1e9, None if self._behind else self._described.verdict
        stage = course.stage(verdict, self._is_alive() or self._behind, judged=not run.get("baseline"))
        until = course.until(seconds, gone=stage == "broken off")
        started = None if course.start is None else course.epoch(course.start.mono)
        call = run.get("call")
        number, of = (call.get("number"), call.get("of")) if isinstance(call, dict) else (None, None)
        state = LiveState(
            run=readable(str(run.get("run", self.directory.name))),
            directory=str(self.directory),
            now=seconds,
            scenario=readable(str(run.get("scenario", ""))),
            cell=readable(str(run.get("cell", ""))),
            cell_number=_count(number),
            cell_count=_count(of),
            baseline_of=bool(run.get("baseline")),
            alive=self._alive[1],
            stage=stage,
            started=started,
            elapsed=None if started is None else max(0.0, until - started),
            limit=course.limit(),
            verdict=verdict,
            baseline_maker=self._maker(seconds) if stage == BASELINE else None,
            cores=_numbers(run.get("cores")),
            holders=holders,
            problems=tuple(self._problems(plan)),
        )
        return state if self._job is None else self._job.onto(state, course, until)

    def _maker(self, now: float) -> BaselineMaker | None:
        """Return who makes the fault-free run that this run waits for, in the same directory of reports."""
        maker = maker_of(self.directory.parent, self._course.baseline_key)
        if maker is None:
            return None
        elapsed = max(0.0, now - maker.since)
        return BaselineMaker(maker.pid, readable(maker.user), maker.since, elapsed, readable(maker.run))

    def _read(self, job: _Job) -> None:
        if not self._behind:
            self._new = self._events.read()
        count = 0
        for event in islice(self._new, _MOST_EVENTS):
            count += 1
            if event.writer == "harness":
                self._course.take(event)
            job.take(event)
        self._behind = count == _MOST_EVENTS

    def _is_alive(self) -> bool | None:
        since, _ = self._alive
        if time.monotonic() - since >= _ALIVE_SECONDS:
            try:
                alive: bool | None = is_live(self.directory)
            except OSError:
                alive = None
            self._alive = (time.monotonic(), alive)
        return self._alive[1]

    def _problems(self, plan: Plan | None) -> list[str]:
        described = (self.directory / RUN_FILE).exists() and (self.directory / "plan.json").exists()
        problems = ["plan.json: cannot be read"] if plan is None and described else []
        problems += ["the history is long and still being read: an earlier moment is shown"] if self._behind else []
        return [*problems, *self._events.problems]


class _Job:
    """The job of a run, by the plan of the run."""

    def __init__(self, plan: Plan, run_dir: Path) -> None:
        self.plan = plan
        self._ranks = Ranks(plan.layout.ranks)
        self._faults = Faults(plan)
        self._ends = JudgedEnds(plan)
        self._losses = Losses(plan, run_dir)
        self._loss: LossState | None = None
        self._recoveries = Recoveries(plan, run_dir)
        self._kept = Kept(self._recoveries.by_fault)
        self._grouping = grouping(plan)
        self._groups = {rank: number for number, group in enumerate(plan.layout.replica_groups) for rank in group}
        self._node_size = node_size(plan)
        self._hit: set[tuple[int | None, int | None]] = set()

    def take(self, event: Event) -> None:
        """Take in an event."""
        if event.event == "attempt.start":
            self._loss = self._losses.state(self._ranks, self._loss)
        self._kept.take(event)
        self._ranks.take(event)
        if event.writer == "harness":
            fault = self._faults.take(event)
            if event.event == "fault.injecting":
                self._hit.add((event.rank, event.pid))
            if fault is not None and event.event == "fault.healed":
                self._ranks.heal(event, fault.ranks)

    def onto(self, state: LiveState, course: Course, until: float) -> LiveState:
        """Return the state of the run with that of its job, ``until`` this time of the wall clock in seconds."""
        history = self._kept.history()
        self._ends.look(history, course.running)
        self._loss = self._losses.state(self._ranks, self._loss)
        ranks = tuple(self._rank(process, course) for process in self._ranks.all)
        step = _step(ranks)
        if step is None and self._loss is not None and self._loss.by_log:
            step = self._loss.step
        return replace(
            state,
            step=step,
            steps=self.plan.training.last_step,
            waiting=None
            if state.stage == "broken off"
            else course.waiting(until, lambda name: self._missing(name, ranks)),
            faults=self._faults.states(course.epoch, until),
            recovery=self._recoveries.state(history, course.mono(until), over=course.end is not None),
            loss=self._loss,
            problems=(*state.problems, *self._losses.problems),
            ranks=ranks,
            groups=tuple(group_states(self._grouping, ranks)),
            ends=self._ends.counts,
        )

    def _rank(self, process: Process, course: Course) -> RankState:
        end, state = None, process.state
        if process.exit is not None:
            planned = self._ends.planned.get((process.attempt, process.rank, process.exit.pid))
            end = EndState(readable(exit_status(process.exit)), planned)
            if planned is False:
                state = "ended unplanned"
            elif process.exit.data.get("code") != 0 and (process.rank, process.exit.pid) in self._hit:
                state = "ended by fault"
        return RankState(
            rank=process.rank,
            node=process.rank // self._node_size,
            group=self._groups.get(process.rank),
            attempt=process.attempt,
            state=state,
            pid=process.pid,
            processes=len(process.pids),
            step=process.step,
            detail=process.detail,
            since=None if process.mono is None else course.epoch(process.mono),
            loss=None if process.loss is None else process.loss[1],
            end=end,
        )

    def _missing(self, name: str, ranks: tuple[RankState, ...]) -> str:
        """Describe the missing condition of a wait of the driver."""
        match name:
            case "start":
                return _in_words({rank.rank: rank.state for rank in ranks if rank.step is None or not rank.step})
            case "fault":
                return self._faults.waiting
            case "end":
                return _in_words({rank.rank: f"step {rank.step}" for rank in ranks if rank.end is None})
        return ""


def _in_words(words: dict[int, str]) -> str:
    parts = [f"{named(ranks)}: {word}" for word, ranks in by_word(words).items()]
    more = [f"and {len(parts) - _MOST_WORDS} others"] if len(parts) > _MOST_WORDS else []
    return "; ".join([*parts[:_MOST_WORDS], *more])


def _step(ranks: tuple[RankState, ...]) -> int | None:
    """Return the last step that all living ranks have begun; of ranks that have all ended, the last of any."""
    living = [rank.step for rank in ranks if rank.end is None and rank.step is not None]
    return min(living) if living else max((rank.step for rank in ranks if rank.step is not None), default=None)


def _numbers(value: object) -> tuple[int, ...]:
    return tuple(number for number in value if isinstance(number, int)) if isinstance(value, list) else ()


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
