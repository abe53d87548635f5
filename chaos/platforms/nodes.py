"""What a platform with nodes gives: the nodes, and what it knows of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from chaos.base.clock import Clock
from chaos.history.ledger import Ledger
from chaos.machine.linux.children import ExitStatus
from chaos.scenario.models.job import Job as JobModel
from chaos.scenario.models.scenario import Scenario

if TYPE_CHECKING:
    from chaos.machine.remote.client import HelperClient, Visitors
    from chaos.platforms.network.links import NodeNetwork

NodeState = Literal["running", "frozen", "gone"]
"""``frozen``: nothing on it runs, and it may go on. ``gone``: whatever ran on it does so no more."""

END_NODES = "end-nodes"
"""The undo step of a platform's nodes. Its arguments name the platform, and hold what that finds them by."""


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
        """Return all nodes as they are."""


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
        """Return the rules that are still there, in words. Raises PlatformError."""


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
        """Return the kernel's boot ID of it now; None while it does not answer."""
