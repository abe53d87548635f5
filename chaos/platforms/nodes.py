"""Jobs of several nodes: what a platform with nodes gives, and the one job that their launchers make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from chaos.base.clock import Clock
from chaos.history.ledger import Ledger
from chaos.machine.ascend.machine import RankMachine
from chaos.machine.job.ending import Ended
from chaos.machine.job.processes import FoundProcess
from chaos.machine.job.protocol import HelperLost, LaunchSpec, Place, PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import ProcessIdentity, State
from chaos.machine.linux.procfs import Signals
from chaos.scenario.models.job import Job as JobModel
from chaos.scenario.models.scenario import Scenario

if TYPE_CHECKING:
    from chaos.machine.remote.client import HelperClient, Visitors
    from chaos.platforms.network.links import NodeNetwork

T = TypeVar("T")

NodeState = Literal["running", "frozen", "gone"]
"""``frozen``: nothing on it runs, and it may go on. ``gone``: whatever ran on it does so no more."""

END_NODES = "end-nodes"
"""The undo step of a platform's nodes. Its arguments name the platform, and hold what that finds them by."""

_SETTLE_SECONDS = 5.0
"""How long a node that a remote helper was lost with may take until it shows that it has gone."""


@dataclass(frozen=True)
class Site:
    """What a platform needs to know to make the nodes of one run.

    ``token`` is the run's identity; ``nodes`` counts them. ``run_dir`` and ``private`` are the run's directories, which
    nodes that share a file system with the harness see at the same paths, and can write, as they can ``writable``;
    ``readable`` are those that its job reads, the scenario's own first. ``settings`` is what the scenario gives in
    ``cluster.<platform>``. ``job`` is what it says of the job, ``ranks`` how many that has, ``kinds`` which kinds of
    faults are to be made, ``needs`` what its ranks need where they run (keys of chaos.doctor.PROBES). ``visitors``
    hears the agents. ``tell`` records an event of a node, with its fields.
    """

    token: str
    nodes: int
    run_dir: Path
    private: Path
    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    settings: object
    ledger: Ledger
    python: Path
    visitors: Visitors
    clock: Clock
    job: JobModel | None = None
    tell: Callable[..., object] = lambda event, **fields: None
    ranks: int = 0
    kinds: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@runtime_checkable
class NamesNodes(Protocol):
    """A platform whose nodes are other machines than this one, which a cluster may know."""

    def names_of_nodes(self, scenario: Scenario, directory: Path) -> Sequence[str]:
        """What the cluster calls the nodes that the scenario is to have, in order."""


@runtime_checkable
class RecordsHosts(Protocol):
    """A platform whose nodes come from a file of the user's that may say otherwise on another day."""

    def hosts_as_given(self, scenario: Scenario, directory: Path) -> Sequence[Mapping[str, Any]]:
        """Return what the file says of each node's host, in order, without secrets. Raises ScenarioError."""


class Node(Protocol):
    """One node of a run."""

    @property
    def number(self) -> int:
        """Its number, from 0."""

    @property
    def address(self) -> str:
        """Its address on the job's network, a number."""

    @property
    def private(self) -> Path:
        """The run's private directory on this node; its remote helper makes it."""

    @property
    def helper(self) -> HelperClient:
        """The remote helper that acts on it. It may have been lost."""

    @property
    def known(self) -> NodeState:
        """``frozen`` or ``gone`` once this run has made it so, else ``running``. Nobody is asked."""

    @property
    def place(self) -> Mapping[str, Any]:
        """What undo steps have to know of where its ranks live; empty where the remote helper is enough."""

    @property
    def node_network(self) -> NodeNetwork | None:
        """The network between the nodes of the run; None where faults cannot change it."""

    def state(self) -> NodeState:
        """What the platform itself says of the node, whatever its remote helper does. Raises PlatformError."""

    def ended(self) -> ExitStatus | None:
        """How processes ended that ran on it when it went; unknown where the platform cannot say, None as yet."""


class Nodes(AbstractContextManager["Nodes"], Protocol):
    """The nodes of one run. Leaving it lets go of the remote helpers; undo steps take the nodes away."""

    @property
    def python(self) -> Path:
        """The interpreter of the ranks, on every node."""

    def ready(self) -> Sequence[Node]:
        """All nodes, each running and with a remote helper that answers: what a fault has taken is there again, as new.

        Raises PlatformError.
        """

    def all(self) -> Sequence[Node]:
        """All nodes as they are."""


@runtime_checkable
class HasNodes(Protocol):
    """A job on nodes."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes, in order."""


@runtime_checkable
class NodePlatform(Protocol):
    """A platform on which a job lives on nodes, each with a remote helper."""

    name: str

    def simulated(self, nodes: int) -> str | None:
        """What of these nodes is not as on a cluster, in words; None when nothing is."""

    def open(self, site: Site) -> Nodes:
        """Make the nodes. What takes them away is in ``site.ledger`` before each is made. Raises PlatformError."""

    def put_back(self, arguments: Mapping[str, Any], token: str, clock: Clock) -> str:
        """Take away what the run ``token`` has made, and say how. ``arguments`` are those of its END_NODES step.

        It may be done twice, and by another process than the one that made it. Raises PlatformError.
        """

    def reach(self, arguments: Mapping[str, Any], token: str, node: int) -> HelperClient | None:
        """Another helper on that node of a run whose harness has gone; None when the node is no more.

        Raises PlatformError.
        """


@runtime_checkable
class Restorable(Protocol):
    """A node that faults can do something to, and that can be put back."""

    def restore(self, what: str) -> str:
        """Put it back, and say how. Raises PlatformError."""


@runtime_checkable
class RestoresNodes(Protocol):
    """A platform that puts back nodes of a run whose harness has gone."""

    def restore(self, arguments: Mapping[str, Any], token: str, node: int, what: str) -> str:
        """Put a node back, and say how. ``arguments`` are those of the run's END_NODES step. Raises PlatformError."""


@runtime_checkable
class TellsRules(Protocol):
    """A node on whose network faults lay rules."""

    def rules_left(self) -> Sequence[str]:
        """Those that are still there, in words. Raises PlatformError."""


@runtime_checkable
class TellsLeft(Protocol):
    """A platform whose nodes leave something where they were, which has to be taken away."""

    def left(self, arguments: Mapping[str, Any], token: str) -> Sequence[str]:
        """What it still has of the run ``token``, in words; ``arguments`` are those of its END_NODES step.

        Raises PlatformError where nobody can say.
        """


@runtime_checkable
class RebootableNode(Protocol):
    """A node that can be rebooted. Both raise PlatformError."""

    def reboot(self, boot: str) -> None:
        """Order its reboot, where it is still in that boot."""

    def boot(self) -> str | None:
        """The kernel's boot ID of it now; None while it does not answer."""


def ranks_of(node: int, nodes: int, ranks: int) -> tuple[int, ...]:
    """The ranks of a node: they are spread over the nodes evenly, in order."""
    each = ranks // nodes
    return tuple(range(node * each, (node + 1) * each))


class NodesJob:
    """One launched job whose parts live on several nodes. Its methods may be called from several threads.

    A node that has gone is a fact about its processes, no error: they have ended. A remote helper that is lost while
    its node runs is an error (HelperLost), for nothing would be known about that node's processes.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        specs: Sequence[LaunchSpec],
        clock: Clock,
    ) -> None:
        """Start the launchers, one of ``specs`` on each node. Raises PlatformError, with what was started ended."""
        self._nodes = {node.number: node for node in nodes}
        self._attempt = specs[0].attempt
        self._collected_exits = {node.number: spec.collected_exit for node, spec in zip(nodes, specs, strict=True)}
        self._clock = clock
        self._statuses: dict[ProcessIdentity, ExitStatus] = {}
        self._seen: dict[int, list[FoundProcess]] = {number: [] for number in self._nodes}
        self._asked: dict[ProcessIdentity, int] = {}
        self._lost: set[int] = set()
        self._launchers: list[ProcessIdentity] = []
        self.reboots: set[tuple[str, int]] = set()
        """Reboots that were ordered: the fault's id, and the node."""
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
        """The node of that number."""
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
        """The job's living processes, on all nodes. Those of a frozen node are the ones that were there before."""
        return [process for node in self._nodes.values() for process in self._processes_of(node)]

    def seen(self) -> list[FoundProcess]:
        """Those that lived when they were last asked for. No node is asked, so it takes no time from a short fault."""
        return [process for found in self._seen.values() for process in found]

    def state(self, identity: ProcessIdentity) -> State:
        """Whether that process runs, is stopped, is a zombie, or is gone; on a frozen node it is stopped."""
        return self._ask(self._of(identity), lambda helper: helper.state(identity), lambda: "stopped", lambda: "gone")

    def exit_status(self, identity: ProcessIdentity) -> ExitStatus | None:
        """How a process of the job ended; None while it runs, or its node is frozen. The first answer stays."""
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
        """What an undo step has to know of where a process of the job lives; empty where the helper is enough."""
        return self._of(identity).place

    def machine(self, identity: ProcessIdentity) -> RankMachine:
        """The machine that a process of the job runs on."""
        from chaos.machine.remote.tool_calls import NodeMachine  # a job of one node, as most are, has no helper

        return NodeMachine(self._of(identity).helper)

    def signal(self, identity: ProcessIdentity, signum: int) -> None:
        """Send a signal to a process of the job. Raises PlatformError for any other, or when its node is not there."""
        node = self._of(identity)

        def refused() -> None:
            raise PlatformError(f"node {node.number} is {node.state()}: nothing was sent to {identity}")

        self._ask(node, lambda helper: helper.signal(self._attempt, identity, signum), refused, refused)

    def signals(self, identity: ProcessIdentity) -> Signals | None:
        """What a process does with signals, and which ones it has not taken yet; None where that cannot be told."""
        return self._ask(self._of(identity), lambda helper: helper.signals(identity), lambda: None, lambda: None)

    def reboot_node(self, node: int, boot: str) -> None:
        """Order the reboot of a node, where it is still in that boot. Raises PlatformError."""
        self._rebootable(node).reboot(boot)

    def boot_of_node(self, node: int) -> str | None:
        """The kernel's boot ID of a node; None while it does not answer. Raises PlatformError."""
        return self._rebootable(node).boot()

    def _rebootable(self, number: int) -> RebootableNode:
        node = self._nodes[number]
        if not isinstance(node, RebootableNode):
            raise PlatformError(f"node {number} cannot be rebooted on this platform")
        return node

    def stop(self, grace_seconds: float) -> Ended:
        """End all processes of the job. Those of a node whose helper was lost are left to the platform's undo steps."""
        with ThreadPoolExecutor(len(self._nodes)) as pool:
            results = list(pool.map(lambda node: self._stop_on(node, grace_seconds), self._nodes.values()))
        return Ended(
            tuple(process for result in results for process in result.ended),
            tuple(left for result in results for left in result.remaining),
        )

    def _stop_on(self, node: Node, grace_seconds: float) -> Ended:
        last = self._seen[node.number]

        def frozen() -> Ended:
            return Ended((), tuple((process, "its node is frozen") for process in last))

        try:
            return self._ask(
                node, lambda helper: helper.stop(self._attempt, grace_seconds), frozen, lambda: Ended((), ())
            )
        except HelperLost as lost:
            return Ended((), tuple((process, str(lost)) for process in last))

    def _processes_of(self, node: Node) -> list[FoundProcess]:
        last = self._seen[node.number]
        found = self._ask(node, lambda helper: helper.processes(self._attempt), lambda: last, list[FoundProcess])
        self._seen[node.number] = found
        return found

    def _of(self, identity: ProcessIdentity) -> Node:
        if identity.node not in self._nodes:
            raise PlatformError(f"{identity} is on none of the job's nodes")
        return self._nodes[identity.node]

    def _ask(self, node: Node, ask: Callable[[HelperClient], T], frozen: Callable[[], T], gone: Callable[[], T]) -> T:
        """Ask the node's remote helper; a node that is frozen or gone is answered for."""
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
        """What a node is whose helper was lost: its end may take a moment to show, and so may the platform's answer.

        Raises HelperLost where the platform does not say in time: then nobody knows anything of the node.
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
        """What the launcher said that has collected the status itself; whoever collects it says so a moment later."""
        tell = self._collected_exits[identity.node or 0]
        since = self._asked.setdefault(identity, self._clock.mono())
        collected_exit = None if tell is None else tell(identity)
        if collected_exit is None and tell is not None and self._clock.mono() - since < 1_000_000_000:
            return None
        return collected_exit or unknown


def places(nodes: Sequence[Node], ranks: int, meeting: Path) -> Iterator[tuple[Node, Place]]:
    """Each node with its place in a job of ``ranks`` ranks."""
    for node in nodes:
        own = ranks_of(node.number, len(nodes), ranks)
        yield node, Place(node.number, len(nodes), own, ranks, node.address, nodes[0].address, meeting)
