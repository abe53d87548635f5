"""One launch of the job, followed from its start until all of its processes have ended."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.base.clock import Clock
from chaos.base.wait import Deadline, DeadlineExpired, wait_for
from chaos.history.event import Event
from chaos.history.writer import HistoryWriter
from chaos.machine.job.processes import BESIDE, FoundProcess, Role
from chaos.machine.job.protocol import Job, launchers_of
from chaos.machine.linux.process import ProcessIdentity
from chaos.platforms.nodes_job import ranks_of
from chaos.run.launch.cause import last_error
from chaos.run.launch.channel import AtBarrier, Channel, EndpointHello, Hello, Message, RefusedCaller
from chaos.run.launch.follow import LogFollower, RankFollower
from chaos.run.launch.rank_words import RankWords
from chaos.run.launch.stacks import Stacks
from chaos.run.launch.step_words import StepsSeen
from chaos.run.progress import Progress
from chaos.run.watch.stalled import Stalled
from chaos.scenario.models.scenario import Deadlines

if TYPE_CHECKING:
    from chaos.run.inject.injection import Injection

STARTING = "start"
"""The deadline by which every rank has begun its first step."""

_GOALS = {STARTING: "every rank begins its first step", "fault": "every fault lands", "end": "every rank ends"}
"""The waits of an attempt, each with its goal."""


class JobFailed(RuntimeError):
    """The job ended, or its ranks did, before it could be used. Names the ranks and where to look."""


@dataclass(frozen=True)
class Watch:
    """The watch over an attempt. ``besides`` is called at every look, for work that is due while the job runs.

    ``own_script`` says that the job's loop is the user's own, and no step of it has been seen yet. Where the job's own
    supervisor starts the ranks again, ``follower`` names the attempt of their next processes, and ``joined`` is called
    once all ranks have joined, before the last of them trains. ``replaced`` is called when a rank has a new process
    within the attempt, before the job's code runs in it.
    """

    history: HistoryWriter
    progress: Progress
    clock: Clock
    deadlines: Deadlines
    run_deadline: Deadline
    besides: Callable[[], None] = lambda: None
    own_script: bool = False
    joined: Callable[[], None] = lambda: None
    follower: str = ""
    replaced: Callable[[], None] = lambda: None


class Attempt:
    """Follows one launched job: finds its ranks, keeps their exit statuses, feeds the fault schedule.

    A rank may have several processes, one after the other, when something starts it again. ``ranks`` holds the latest
    process.
    """

    def __init__(
        self, name: str, ranks: int, job: Job, channel: Channel, injection: Injection, run_dir: Path, watch: Watch
    ) -> None:
        self.name = name
        self.ranks: dict[int, ProcessIdentity] = {}
        self._size = ranks
        self._job = job
        self._channel = channel
        self._injection = injection
        self._watch = watch
        self._exited: dict[int, str] = {}
        self._exits: dict[int, int] = {}
        self._processes: dict[ProcessIdentity, int] = {}
        self._started: set[int] = set()
        self._steps: dict[int, int] = {}
        self._steps_seen = StepsSeen(own_script=watch.own_script)
        self._first_step_mono: int | None = None
        self._logs_dir = run_dir / "logs" / name
        self._words = RankWords(ranks, self._logs_dir)
        self._followed = RankFollower(run_dir / "history", name)
        self._logs = LogFollower(self._logs_dir, ranks)
        self.stacks = Stacks(self._logs_dir, watch.clock)
        self.followers: list[Hello] = []
        self._others: dict[ProcessIdentity, Role] = {}
        self._deserted = 0
        self._refused: dict[int, str] = {}
        self._on_nodes = job.launcher.node is not None
        self._moves = 0
        self._began = watch.clock.mono()

    def follow(self) -> None:
        """Follow the job to its end.

        Raises JobFailed when the job cannot start, DeadlineExpired naming the goal that was not reached in time.
        """
        limits = self._watch.deadlines
        self._wait(STARTING, self._all_started, limits.start, self._not_started, self._advice)
        if self._injection.waiting:
            self._wait("fault", self._faults_done, limits.fault, self._not_fired)
        self._wait("end", self._all_exited, limits.end, self._not_exited)
        self._injection.miss_rest(self._steps_seen.missed("the job has ended"))

    def note_leftovers(self, seconds: float) -> None:
        """Record the launcher and helpers that do not end in time after the end of all ranks."""
        ours = {self.ranks[rank] for rank in self._injection.suspended if rank in self.ranks}

        def left() -> list[FoundProcess]:
            return [process for process in self._job.processes() if process.identity not in ours]

        try:
            wait_for("leftovers", lambda: not left(), seconds=seconds, clock=self._watch.clock)
        except DeadlineExpired:
            orphans = [
                {"pid": process.pid, "cmdline": list(process.cmdline), **_on(process.identity.node)}
                for process in left()
            ]
            self._record("job.leftovers", orphans=orphans)

    def take_stacks(self) -> None:
        """Record where every rank is that has not ended: the job has come to a deadline, and is about to be ended."""
        taken = self.stacks.take(self._job, self.ranks, self._exited.keys(), self._steps)
        if taken is not None:
            self._record("stacks.taken", **taken)

    # Conditions. Each takes in everything first, so that nothing is missed while the driver waits for another.

    def _all_started(self) -> bool:
        self.look()
        if self._exited and len(self._started) < self._size and not self._injection.known.landed:
            first, moment = next(iter(self._exits.items()))
            self._take_events()  # the last words of the ranks that have just ended
            why = self._steps_seen.why_none(self._exited)
            raise JobFailed(self._words.ended_early(self._exited, first, (moment - self._began) / 1e9, why))
        self._check_joining()
        return len(self._started) == self._size or self._ended()

    def _check_joining(self) -> None:
        """Raise JobFailed where no process is left to join.

        It must be seen twice, since a process hides while it executes.
        """
        absent = sorted(set(range(self._size)) - self.ranks.keys())
        launched = [self._job.exit_status(launcher) for launcher in launchers_of(self._job)]
        living = self.ranks.keys() - self._exited.keys()  # as long as there are ranks, no other process is looked for
        if not absent or None in launched or living or self._job.processes():
            self._deserted = 0
            return
        self._deserted += 1
        if self._deserted > 1:
            last_words = last_error(self._logs_dir / "msrun.log")
            how = ", ".join(map(str, launched))
            reason = f": {last_words}" if last_words else ""
            raise JobFailed(
                f"the launcher ended ({how}), and {self._words.set(absent)} never joined{reason}; see {self._logs_dir}"
            )

    def _faults_done(self) -> bool:
        self.look()
        return not self._injection.waiting or self._ended()

    def _all_exited(self) -> bool:
        self.look()
        return self._ended()

    def _ended(self) -> bool:
        """Return whether every rank has ended, and none will start again.

        A rank has ended when it has exited, or when a fault that only the teardown undoes suspends it.

        As long as a launcher runs, it may start ranks again.
        """
        if len(self._exited.keys() | self._injection.suspended) < self._size:
            return False
        return bool(self._watch.follower) or all(
            self._job.exit_status(launcher) is not None for launcher in launchers_of(self._job)
        )

    def _not_started(self) -> str:
        joined = set(self.ranks)
        absent = sorted(set(range(self._size)) - joined)
        idle = sorted(joined - self._started)
        parts = []
        if absent:
            where = self._words.whereabouts(absent, self._refused, self._job)
            parts.append(f"{self._words.set(absent)} never joined ({where})")
        if idle:
            verb = "has not begun its" if len(idle) == 1 else "have not begun their"
            parts.append(f"{self._words.set(idle)} joined but {verb} first step")
        return "; ".join(parts) + f"; see {self._logs_dir}"

    def _advice(self) -> str:
        """Say what to do about ranks that have joined and begun no step; of absent ranks nothing is known."""
        return self._steps_seen.not_yet() if self.ranks.keys() - self._started else ""

    def _not_fired(self) -> str:
        at = self._words.positions(set(range(self._size)), self._exited, self._steps)
        return f"{self._injection.waiting}; {at}; see {self._logs_dir}"

    def _not_exited(self) -> str:
        left = set(range(self._size)) - self._exited.keys() - self._injection.suspended
        at = self._words.positions(left, self._exited, self._steps) if left else "the launcher"
        return f"not exited: {at}; see {self._logs_dir}"

    def _wait(
        self,
        name: str,
        condition: Callable[[], bool],
        seconds: float,
        detail: Callable[[], str],
        advice: Callable[[], str] = str,
    ) -> None:
        """Wait for a condition; ``detail`` says what is missing, and ``advice`` what to do when it does not come."""
        stalled = Stalled(name, seconds, self._watch.clock, detail)
        self._record("wait.begin", name=name, goal=_GOALS[name], seconds=float(seconds))

        def has_come() -> bool:
            if condition():
                return True
            if (text := stalled.look(self._moves)) is not None:
                self._watch.progress.note(f"{self.name}: {text}")
            return False

        wait_for(
            name,
            has_come,
            seconds=seconds,
            clock=self._watch.clock,
            detail=lambda: detail() + advice(),
            within=[self._watch.run_deadline],
        )

    # Looking.

    def look(self) -> None:
        """Take in everything that has happened since the last look, and make the faults that are due."""
        self._take_messages()
        self._take_events()
        if text := self._steps_seen.unclear():
            raise JobFailed(f"{text}; see {self._logs_dir}")
        self._take_logs()
        self._take_exits()
        if self._first_step_mono is not None:
            self._injection.known.elapsed = (self._watch.clock.mono() - self._first_step_mono) / 1e9
        self._injection.inject_due(self._job, self.ranks)
        self._watch.besides()

    def _take_messages(self) -> None:
        """Take in the messages that have come until now, and no more.

        Exits are looked for between two crowds of callers. One look at the job's processes serves all callers that
        introduce themselves.
        """
        messages = list(self._waiting_messages())
        callers = [message for message in messages if isinstance(message, (Hello, EndpointHello))]
        processes = self._look_at_processes() if callers else {}
        for message in messages:
            match message:
                case Hello():
                    self._welcome(message, processes.get((message.node, message.pid)))
                case EndpointHello():
                    self._welcome_endpoint(message, processes.get((message.node, message.pid)))
                case AtBarrier():
                    self._injection.hold(message)
                case RefusedCaller():
                    self._record(
                        "caller.refused", pid=message.pid, channel="agents", what=message.what, **_on(message.node)
                    )

    def _waiting_messages(self) -> Iterator[Message]:
        """Yield the messages that are waiting now; a caller that goes on sending does not keep the loop here."""
        for _ in range(self._channel.messages.qsize()):
            try:
                yield self._channel.messages.get_nowait()
            except queue.Empty:
                return

    def _welcome(self, hello: Hello, caller: FoundProcess | None) -> None:
        """Welcome an agent that has proved itself.

        Its process must be a rank of this job by every other sign too.
        """
        known = caller is not None and (caller.role, caller.rank) == ("rank", hello.rank) and hello.rank < self._size
        if known and hello.attempt == self._watch.follower:
            self.followers.append(hello)  # it waits until the ranks before it have ended
            return
        if caller is None or not known or hello.attempt != self.name:
            what = f"is not rank {hello.rank} of this job"
            self._record("caller.refused", pid=hello.pid, channel="agents", what=what, **_on(hello.node))
            self._refused[hello.rank] = f"process {hello.pid} {what}"
            hello.connection.close()
            return
        self._check_node(hello)
        if hello.rank in self.ranks:
            self._watch.replaced()
        self.ranks[hello.rank] = caller.identity
        self._processes[caller.identity] = hello.rank
        self._exited.pop(hello.rank, None)  # of its process before this one
        self._exits.pop(hello.rank, None)
        self._injection.suspended.discard(hello.rank)
        start_time = caller.identity.start_time
        where = _on(hello.node)
        if len(self.ranks) == self._size:
            self._watch.joined()
        self._record("rank.found", rank=hello.rank, pid=hello.pid, start_time=start_time, ppid=caller.ppid, **where)
        hello.connection.answer({"message": "welcome", "armed": self._injection.armed_for(hello.rank)})

    def _check_node(self, hello: Hello) -> None:
        """Raise JobFailed where a rank is on another node than the plan has it: faults of a node would hit others."""
        nodes = len(launchers_of(self._job))
        if hello.node is not None and hello.rank not in ranks_of(hello.node, nodes, self._size):
            raise JobFailed(
                f"rank {hello.rank} is on node {hello.node}, against the plan: the launcher numbers the nodes in "
                f"another order (torchrun by their addresses); see {self._logs_dir}"
            )

    def _welcome_endpoint(self, hello: EndpointHello, caller: FoundProcess | None) -> None:
        """Welcome a control endpoint that has proved itself.

        Its process must belong to this job by every other sign too.
        """
        if caller is None or hello.attempt != self.name or hello.rank != caller.rank:
            what = f"is no {hello.endpoint} control endpoint of this job"
            self._record("caller.refused", pid=hello.pid, channel="agents", what=what, **_on(hello.node))
            hello.connection.close()
            return
        self._injection.endpoints.add(hello.endpoint, hello.rank, hello.connection)
        self._record("endpoint.found", rank=hello.rank, pid=hello.pid, endpoint=hello.endpoint)
        hello.connection.answer({"message": "welcome"})

    def _look_at_processes(self) -> dict[tuple[int | None, int], FoundProcess]:
        """Return the job's processes, by node and PID.

        Those beside the ranks are recorded, so that none is taken for a rank.
        """
        processes = self._job.processes()
        for process in processes:
            if process.role in BESIDE and process.identity not in self._others:
                self._others[process.identity] = process.role
                where = _on(process.identity.node)
                self._record(
                    "launcher.found",
                    pid=process.pid,
                    role=process.role,
                    start_time=process.identity.start_time,
                    **where,
                )
        return {(process.identity.node, process.pid): process for process in processes}

    def _take_events(self) -> None:
        for event in self._followed.new_events():
            name, rank = event.get("event"), event.get("rank")
            if not isinstance(rank, int) or not isinstance(name, str):
                continue
            self._moves += 1
            if name == "agent.start":
                self.stacks.note(event)
            if name == "step.begin":
                self._started.add(rank)
            self._steps_seen.take(rank, event)
            if name in ("step.begin", "step.end") and isinstance(event.get("step"), int):
                self._steps[rank] = event["step"]
            if self._first_step_mono is None and len(self._started) == self._size:
                self._first_step_mono = self._watch.clock.mono()
            shown = _as_event(event)
            # A node has a clock of its own; an onlooker sees when the event came.
            self._watch.progress.event(replace(shown, mono=self._watch.clock.mono()) if self._on_nodes else shown)

    def _take_logs(self) -> None:
        if not self._injection.texts:
            return
        for rank, line in self._logs.new_lines():
            for text, logging_rank in self._injection.texts:
                if text in line and logging_rank in (None, rank):
                    self._injection.known.logged.add((text, logging_rank))

    def _take_exits(self) -> None:
        for identity, rank in list(self._processes.items()):
            status = self._job.exit_status(identity)
            if status is not None:
                self._moves += 1
                del self._processes[identity]
                if self.ranks[rank] == identity:
                    self._exited[rank] = str(status)
                    self._exits[rank] = self._watch.clock.mono()
                began = identity.start_time
                how = {key: value for key, value in asdict(status).items() if key != "told_by" or value}
                self._record("rank.exit", rank=rank, pid=identity.pid, start_time=began, **how, **_on(identity.node))

    def record_late_exits(self) -> None:
        """Record the exits of ranks that the teardown had to end, and those of the launcher and the lighthouse."""
        self._take_exits()
        beside: dict[ProcessIdentity, Role] = dict.fromkeys(launchers_of(self._job), "launcher")
        beside |= {identity: role for identity, role in self._others.items() if role == "lighthouse"}
        for identity, role in beside.items():
            status = self._job.exit_status(identity)
            if status is not None:
                self._record(
                    "launcher.exit",
                    pid=identity.pid,
                    role=role,
                    signal=status.signal,
                    code=status.code,
                    **_on(identity.node),
                )

    def _record(self, event: str, **fields: Any) -> None:
        self._watch.progress.event(self._watch.history.record(event, attempt=self.name, **fields))


def _on(node: int | None) -> dict[str, int]:
    """Return the event field that names the node, where there are several nodes."""
    return {} if node is None else {"node": node}


def _as_event(event: dict[str, Any]) -> Event:
    frame = ("event", "mono", "wall", "seq", "attempt", "rank", "pid")
    values = {key: event.get(key) for key in frame}
    data = {key: value for key, value in event.items() if key not in frame}
    return Event(writer="agent", data=data, **values)  # type: ignore[arg-type]
