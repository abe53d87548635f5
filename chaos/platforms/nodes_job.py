"""The job of several nodes: one job, made by all of their launchers together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from chaos.base.clock import Clock
from chaos.machine.ascend.machine import RankMachine
from chaos.machine.job.ending import Ended
from chaos.machine.job.processes import FoundProcess
from chaos.machine.job.protocol import HelperLost, LaunchSpec, Place, PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import ProcessIdentity, State
from chaos.machine.linux.procfs import Signals
from chaos.platforms.nodes import Node, NodeState, RebootableNode

if TYPE_CHECKING:
    from chaos.machine.remote.client import HelperClient

T = TypeVar("T")

_SETTLE_SECONDS = 5.0
"""How long a node whose remote helper was lost may take until it shows that it has gone."""


def ranks_of(node: int, nodes: int, ranks: int) -> tuple[int, ...]:
    """Return the ranks of a node: ranks are spread over the nodes evenly, in order."""
    each = ranks // nodes
    return tuple(range(node * each, (node + 1) * each))


class NodesJob:
    """One launched job whose parts live on several nodes. Its methods may be called from several threads.

    A node that has gone is a fact about its processes, not an error: they have ended. A remote helper that is lost
    while its node runs is an error (HelperLost), for nothing is known about the processes of that node.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        specs: Sequence[LaunchSpec],
        clock: Clock,
    ) -> None:
        """Start the launchers, one of ``specs`` on each node.

        Raises PlatformError, after ending every launcher it started.
        """
        self._nodes = {node.number: node for node in nodes}
        self._attempt = specs[0].attempt
        self._collected_exits = {node.number: spec.collected_exit for node, spec in zip(nodes, specs, strict=True)}
        self._clock = clock
        self._statuses: dict[ProcessIdentity, ExitStatus] = {}
        self._last_processes: dict[int, list[FoundProcess]] = {number: [] for number in self._nodes}
        self._asked: dict[ProcessIdentity, int] = {}
        self._lost: set[int] = set()
        self._launchers: list[ProcessIdentity] = []
        self.reboots: set[tuple[str, int]] = set()
        """The reboots that were ordered: the fault's id, and the node."""
        try:
            for node, spec in zip(nodes, specs, strict=True):
                self._launchers.append(node.helper.start(spec))
        except BaseException:
            for node in nodes[: len(self._launchers)]:
                self._ask(node, lambda helper: helper.stop(self._attempt, 0.0), lambda: None, lambda: None)
            raise

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes, in order."""
        return tuple(self._nodes.values())

    def node(self, number: int) -> Node:
        """Return the node of that number."""
        return self._nodes[number]

    @property
    def launcher(self) -> ProcessIdentity:
        """The launcher on node 0."""
        return self._launchers[0]

    @property
    def launchers(self) -> tuple[ProcessIdentity, ...]:
        """The launchers, in order of nodes."""
        return tuple(self._launchers)

    def processes(self) -> list[FoundProcess]:
        """Return the job's living processes, on all nodes.

        The processes of a frozen node are those before the freeze.
        """
        return [process for node in self._nodes.values() for process in self._processes_of(node)]

    def last_processes(self) -> list[FoundProcess]:
        """Return the processes that lived at the last call of ``processes``.

        No node is asked, so it takes no time from a short fault.
        """
        return [process for processes in self._last_processes.values() for process in processes]

    def state(self, identity: ProcessIdentity) -> State:
        """Return whether that process runs, is stopped, is a zombie, or is gone; on a frozen node it is stopped."""
        return self._ask(self._of(identity), lambda helper: helper.state(identity), lambda: "stopped", lambda: "gone")

    def exit_status(self, identity: ProcessIdentity) -> ExitStatus | None:
        """Return how a process of the job ended; None while it runs, or its node is frozen. The first answer stays."""
        if identity not in self._statuses:
            node = self._of(identity)
            status = self._ask(
                node, lambda helper: helper.exit_status(self._attempt, identity), lambda: None, node.ended
            )
            if status is not None and not status.known:
                status = self._collected_by_launcher(identity, status)
            if status is not None:
                self._statuses[identity] = status
        return self._statuses.get(identity)

    def place(self, identity: ProcessIdentity) -> Mapping[str, Any]:
        """Return the place of a process of the job for an undo step; empty where the helper is enough."""
        return self._of(identity).place

    def machine(self, identity: ProcessIdentity) -> RankMachine:
        """Return the machine that a process of the job runs on."""
        from chaos.machine.remote.tool_calls import NodeMachine  # a job of one node, the usual case, has no helper

        return NodeMachine(self._of(identity).helper)

    def signal(self, identity: ProcessIdentity, signum: int) -> None:
        """Send a signal to a process of the job. Raises PlatformError for any other, or when its node is not there."""
        node = self._of(identity)

        def refused() -> None:
            raise PlatformError(f"node {node.number} is {node.state()}: nothing was sent to {identity}")

        self._ask(node, lambda helper: helper.signal(self._attempt, identity, signum), refused, refused)

    def signals(self, identity: ProcessIdentity) -> Signals | None:
        """Return what a process does with signals, and its pending signals; None where they cannot be read."""
        return self._ask(self._of(identity), lambda helper: helper.signals(identity), lambda: None, lambda: None)

    def reboot_node(self, node: int, boot: str) -> None:
        """Order the reboot of a node, where it is still in that boot. Raises PlatformError."""
        self._rebootable(node).reboot(boot)

    def boot_of_node(self, node: int) -> str | None:
        """Return the boot ID of a node's kernel; None while it does not answer. Raises PlatformError."""
        return self._rebootable(node).boot()

    def _rebootable(self, number: int) -> RebootableNode:
        node = self._nodes[number]
        if not isinstance(node, RebootableNode):
            raise PlatformError(f"node {number} cannot be rebooted on this platform")
        return node

    def stop(self, grace_seconds: float) -> Ended:
        """End all processes of the job.

        Processes of a node whose helper was lost are left to the platform's undo steps.
        """
        with ThreadPoolExecutor(len(self._nodes)) as pool:
            results = list(pool.map(lambda node: self._stop_on(node, grace_seconds), self._nodes.values()))
        return Ended(
            tuple(process for result in results for process in result.ended),
            tuple(left for result in results for left in result.remaining),
        )

    def _stop_on(self, node: Node, grace_seconds: float) -> Ended:
        last = self._last_processes[node.number]

        def frozen() -> Ended:
            return Ended((), tuple((process, "its node is frozen") for process in last))

        try:
            return self._ask(
                node, lambda helper: helper.stop(self._attempt, grace_seconds), frozen, lambda: Ended((), ())
            )
        except HelperLost as lost:
            return Ended((), tuple((process, str(lost)) for process in last))

    def _processes_of(self, node: Node) -> list[FoundProcess]:
        last = self._last_processes[node.number]
        processes = self._ask(node, lambda helper: helper.processes(self._attempt), lambda: last, list[FoundProcess])
        self._last_processes[node.number] = processes
        return processes

    def _of(self, identity: ProcessIdentity) -> Node:
        if identity.node not in self._nodes:
            raise PlatformError(f"{identity} is on none of the job's nodes")
        return self._nodes[identity.node]

    def _ask(self, node: Node, ask: Callable[[HelperClient], T], frozen: Callable[[], T], gone: Callable[[], T]) -> T:
        """Ask the node's remote helper; for a frozen or gone node call ``frozen`` or ``gone`` instead."""
        state = self._settled(node) if node.helper.lost is not None else node.known
        if state == "running":
            try:
                return ask(node.helper)
            except HelperLost as lost:
                state = self._settled(node)
                if state == "running":
                    raise lost
        return frozen() if state == "frozen" else gone()

    def _settled(self, node: Node) -> NodeState:
        """Return the state of a node whose helper was lost: its end may take a moment to show, and so may the answer.

        Raises HelperLost where the platform gives no answer in time: then nothing is known of the node.
        """
        seconds = 0.0 if node.number in self._lost else _SETTLE_SECONDS
        self._lost.add(node.number)
        deadline = self._clock.mono() + int(seconds * 1e9)
        while True:
            try:
                state, silent = node.state(), None
            except PlatformError as error:
                state, silent = "running", error
            if state != "running" or self._clock.mono() >= deadline:
                break
            self._clock.sleep(0.05)
        if silent is not None:
            raise HelperLost(
                f"node {node.number}: its remote helper was lost, and so was its platform: {silent}"
            ) from silent
        return state

    def _collected_by_launcher(self, identity: ProcessIdentity, unknown: ExitStatus) -> ExitStatus | None:
        """Return the status from a launcher that collects it itself; the launcher reports it a moment later."""
        tell = self._collected_exits[identity.node or 0]
        since = self._asked.setdefault(identity, self._clock.mono())
        collected_exit = None if tell is None else tell(identity)
        if collected_exit is None and tell is not None and self._clock.mono() - since < 1_000_000_000:
            return None
        return collected_exit or unknown


def places(nodes: Sequence[Node], ranks: int, meeting: Path) -> Iterator[tuple[Node, Place]]:
    """Yield each node with its place in a job of ``ranks`` ranks."""
    for node in nodes:
        node_ranks = ranks_of(node.number, len(nodes), ranks)
        yield node, Place(node.number, len(nodes), node_ranks, ranks, node.address, nodes[0].address, meeting)
