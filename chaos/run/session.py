"""A run's session: everything that must exist before a job can start, and be gone afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.base.clock import Clock
from chaos.base.refusal import Refused
from chaos.base.wait import Deadline
from chaos.base.walking import entries_below
from chaos.heal.undo import UndoContext, Undone, after_launches, after_processes, in_order
from chaos.heal.undo_nodes import NodesByUndoSteps
from chaos.history.ledger import UndoStep
from chaos.history.writer import HistoryWriter
from chaos.machine.job.processes import find_run_processes
from chaos.machine.job.protocol import Platform, PlatformError
from chaos.plan.model import Plan
from chaos.platforms.node_interface import check_nodes
from chaos.platforms.nodes import Node, NodePlatform, Nodes, Site
from chaos.run.inject.put_back import put_back
from chaos.run.interrupts import interruptible_once, uninterrupted
from chaos.run.launch.channel import Channel
from chaos.run.launch.setup import write_secret
from chaos.run.progress import Progress
from chaos.run.watch.nodes_left import record_afterwards, record_on_nodes
from chaos.run.watch.ports_left import left_of_port
from chaos.scenario.models.scenario import Scenario
from chaos.store.directory import MEMORY, RunDirectory, make_private_directory

MEETING = "meeting"
"""The directory within the private one in which the ranks of several nodes find each other."""


@dataclass(frozen=True)
class Session:
    """One run in progress. ``ports`` are leased for it; ``private`` is its directory for sockets and the secret.

    ``memory`` is its directory in memory, where the job keeps checkpoints there. ``nodes`` are the job's nodes, on a
    platform that has nodes.
    """

    scenario: Scenario
    scenario_directory: Path
    plan: Plan
    owned: RunDirectory
    history: HistoryWriter
    channel: Channel
    private: Path
    ports: tuple[int, ...]
    cores: tuple[int, ...]
    progress: Progress
    clock: Clock
    deadline: Deadline
    memory: Path | None = None
    nodes: Nodes | None = None


@dataclass(frozen=True)
class JobPlatform:
    """The platform that a job is started on, and the instructions for its nodes where it has nodes.

    ``settings`` are the scenario's settings for the platform, ``needs`` the needs of the ranks where they run.
    """

    platform: Platform | NodePlatform | None = None
    settings: object = None
    needs: tuple[str, ...] = ()


@contextmanager
def open_session(
    scenario: Scenario,
    scenario_directory: Path,
    plan: Plan,
    owned: RunDirectory,
    history: HistoryWriter,
    *,
    ports: tuple[int, ...],
    cores: tuple[int, ...],
    progress: Progress,
    clock: Clock,
    deadline: Deadline,
    on: JobPlatform = JobPlatform(),
) -> Iterator[Session]:
    """Set up, and put everything back whatever happens: faults, processes, private directory, in reverse order.

    The ledger lists each thing to put back before it exists, so ``chaos heal`` can do the same after a SIGKILL.
    Leftovers are recorded as the event ``hygiene``.
    """
    token = owned.token
    private: Path | None = None
    memory: Path | None = None
    with interruptible_once():
        try:
            owned.ledger.record(UndoStep("job", None, "end-job", {"run": token}, "end every process of the job"))
            private = make_private_directory(owned.ledger, token)
            if scenario.job.storage.memory:
                if not MEMORY.is_dir():
                    raise Refused(f"job.storage.memory: this machine has no {MEMORY} to keep checkpoints in memory in")
                memory = make_private_directory(owned.ledger, token, parent=MEMORY, step="memory-directory")
            with (
                closing(
                    Channel(private / "agents", run=token, secret=write_secret(private), ranks=plan.layout.ranks)
                ) as channel,
                _nodes_of(on, scenario, scenario_directory, owned, private, memory, channel, clock, history) as nodes,
            ):
                place = (channel, private, ports, cores)
                who = (scenario, scenario_directory, plan, owned, history)
                try:
                    yield Session(*who, *place, progress, clock, deadline, memory, nodes)
                finally:
                    if nodes is not None:
                        with uninterrupted():
                            _record_nodes(owned, history, clock, nodes, private)
                    for refused in channel.refused_callers():
                        where: dict[str, Any] = {} if refused.node is None else {"node": refused.node}
                        history.record("caller.refused", pid=refused.pid, channel="agents", what=refused.what, **where)
        finally:
            with uninterrupted():
                _undo(owned, history, clock, lambda step: True)
                record_afterwards(history, token, owned.ledger.read().steps)
                _record_hygiene(owned, history, ports, [path for path in (private, memory) if path is not None])


def _record_nodes(owned: RunDirectory, history: HistoryWriter, clock: Clock, nodes: Nodes, private: Path) -> None:
    """Ask the remote helpers for leftovers, while they are there: when all faults have been put back."""
    node_list = nodes.all()
    _undo(owned, history, clock, lambda step: step.fault is not None, node_list)
    record_on_nodes(
        history, owned.token, owned.ledger.read().steps, node_list, [str(owned.path.resolve()), str(private)]
    )


@contextmanager
def _nodes_of(
    on: JobPlatform,
    scenario: Scenario,
    scenario_directory: Path,
    owned: RunDirectory,
    private: Path,
    memory: Path | None,
    channel: Channel,
    clock: Clock,
    history: HistoryWriter,
) -> Iterator[Nodes | None]:
    """Open the nodes of the run, where its platform has nodes; their undo step takes them away."""
    platform = on.platform
    if not isinstance(platform, NodePlatform):
        yield None
        return
    meeting = private / MEETING
    meeting.mkdir(mode=0o700)
    site = Site(
        token=owned.token,
        nodes=scenario.cluster.nodes,
        run_dir=owned.path.resolve(),
        private=private,
        writable=() if memory is None else (memory,),
        readable=(scenario_directory.resolve(),),
        settings=on.settings,
        ledger=owned.ledger,
        python=Path(sys.executable),
        visitors=channel,
        clock=clock,
        job=scenario.job,
        record_event=history.record,
        ranks=scenario.cluster.ranks,
        kinds=tuple(sorted({fault.kind for fault in scenario.faults})),
        needs=on.needs,
    )
    try:
        nodes = platform.open(site)
    except PlatformError as error:
        raise Refused(f"platform {platform.name}: {error}") from error
    with nodes:
        try:
            check_nodes(nodes.all())
        except PlatformError as error:
            raise Refused(f"platform {platform.name}: {error}") from error
        yield nodes


def put_back_faults(session: Session, *, running: bool = False) -> None:
    """Undo the faults that are still open, and leave the job and the private directory as they are.

    A change meant for the next launch stays until the session ends.
    """
    _undo(
        session.owned,
        session.history,
        session.clock,
        lambda step: (
            step.fault is not None
            and not after_launches(step.action)
            and not (running and after_processes(step.action))
        ),
        [] if session.nodes is None else session.nodes.all(),
    )


def undo_context(owned: RunDirectory, clock: Clock, nodes: Sequence[Node] = ()) -> UndoContext:
    """Return the working context of a run's undo steps: the run and its nodes."""
    return UndoContext(owned.token, clock, nodes=NodesByUndoSteps(owned.token, owned.ledger.read().steps, nodes))


def _undo(
    owned: RunDirectory,
    history: HistoryWriter,
    clock: Clock,
    is_due: Callable[[UndoStep], bool],
    nodes: Sequence[Node] = (),
) -> None:
    """Undo open steps of the ledger, the latest first, and record the steps that belong to a fault."""

    def record(undone: Undone) -> None:
        step = undone.step
        if not undone.ok:
            history.record("undo.failed", fault=step.fault, step=step.id, why=undone.how)
        elif step.fault is not None:
            history.record("fault.healed", fault=step.fault, how=undone.how)

    steps = filter(is_due, in_order(owned.ledger.read().open))
    put_back(owned.ledger, steps, undo_context(owned, clock, nodes), record)


def _record_hygiene(
    owned: RunDirectory, history: HistoryWriter, ports: tuple[int, ...], directories: list[Path]
) -> None:
    """Record the leftovers of the run after it was put back: processes, listening ports, half-written files."""
    job = owned.path / "job"
    unseen: list[OSError] = []
    stale = [path for path in entries_below(job, unseen.append) if path.name.endswith(("_tmp", ".tmp", ".partial"))]
    unsearched: dict[str, Any] = (
        {"unsearched": [f"{error.filename}: {error.strerror}" for error in unseen]} if unseen else {}
    )
    history.record(
        "hygiene",
        orphans=[{"pid": p.pid, "cmdline": list(p.cmdline)} for p in find_run_processes(owned.token)],
        ports=[left for port in ports if (left := left_of_port(port, owned.token)) is not None],
        stale=sorted(str(path.relative_to(owned.path)) for path in stale),
        private_left=any(directory.exists() for directory in directories),
        **unsearched,
    )
