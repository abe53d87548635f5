"""The interface of a platform with nodes: the nodes, and the platform's knowledge of them."""

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
"""``frozen``: nothing on it runs, and it may go on. ``gone``: everything that ran on it has ended."""

END_NODES = "end-nodes"
"""The undo step of a platform's nodes. Its arguments name the platform, and identify the nodes to it."""


@dataclass(frozen=True)
class Site:
    """The facts that a platform needs to make the nodes of one run.

    ``token`` is the run's identity; ``nodes`` counts the nodes. ``run_dir`` and ``private`` are the run's directories.
    Nodes that share a file system with the harness see them at the same paths and can write them, and ``writable`` too;
    ``readable`` are the directories that the job reads, the scenario's own first. ``settings`` is the scenario's
    ``cluster.<platform>``. ``job`` is the scenario's job, ``ranks`` its number of ranks, ``kinds`` the kinds of the
    planned faults, ``needs`` the needs of its ranks where they run (keys of chaos.doctor.PROBES). ``visitors`` hears
    the agents. ``record_event`` records an event of a node, with its fields.
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
    record_event: Callable[..., object] = lambda event, **fields: None
    ranks: int = 0
    kinds: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@runtime_checkable
class NamesNodes(Protocol):
    """A platform whose nodes are other machines than this one, which a cluster may know."""

    def names_of_nodes(self, scenario: Scenario, directory: Path) -> Sequence[str]:
        """Return the cluster's names of the scenario's nodes, in order."""


@runtime_checkable
class RecordsHosts(Protocol):
    """A platform whose nodes come from a file of the user's that may have other content on another day."""

    def hosts_as_given(self, scenario: Scenario, directory: Path) -> Sequence[Mapping[str, Any]]:
        """Return the file's entry for each node's host, in order, without secrets. Raises ScenarioError."""


class Node(Protocol):
    """One node of a run."""

    @property
    def number(self) -> int:
        """Its number, from 0."""

    @property
    def address(self) -> str:
        """Its address on the job's network, in numbers."""

    @property
    def private(self) -> Path:
        """The run's private directory on this node; its remote helper makes it."""

    @property
    def helper(self) -> HelperClient:
        """The remote helper that acts on it. It may have been lost."""

    @property
    def known(self) -> NodeState:
        """``frozen`` or ``gone`` once this run has made it so, else ``running``. Nothing is asked."""

    @property
    def place(self) -> Mapping[str, Any]:
        """The place of its ranks for undo steps; empty where the remote helper is enough."""

    @property
    def node_network(self) -> NodeNetwork | None:
        """The network between the nodes of the run; None where faults cannot change it."""

    def state(self) -> NodeState:
        """Return the platform's own state of the node, whatever its remote helper does. Raises PlatformError."""

    def ended(self) -> ExitStatus | None:
        """Return how its processes ended when it went; unknown where the platform cannot say, None as yet."""


class Nodes(AbstractContextManager["Nodes"], Protocol):
    """The nodes of one run. Leaving the context closes the remote helpers; undo steps remove the nodes."""

    @property
    def python(self) -> Path:
        """The interpreter of the ranks, on every node."""

    def ready(self) -> Sequence[Node]:
        """Return all nodes, each running and with a remote helper that answers: a lost node is back, as new.

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
        """Return the difference between these nodes and a cluster's, in words; None when there is none."""

    def open(self, site: Site) -> Nodes:
        """Make the nodes. The undo step is in ``site.ledger`` before each node is made. Raises PlatformError."""

    def put_back(self, arguments: Mapping[str, Any], token: str, clock: Clock) -> str:
        """Remove the objects that the run ``token`` has made, and return how.

        ``arguments`` come from its END_NODES step. It may be done twice, and by another process than the maker's.
        Raises PlatformError.
        """

    def reach(self, arguments: Mapping[str, Any], token: str, node: int) -> HelperClient | None:
        """Return another helper on that node of a run whose harness has gone; None when the node is gone.

        Raises PlatformError.
        """


@runtime_checkable
class Restorable(Protocol):
    """A node that faults can change, and that can be put back."""

    def restore(self, what: str) -> str:
        """Put the node back, and return how. Raises PlatformError."""


@runtime_checkable
class RestoresNodes(Protocol):
    """A platform that puts back nodes of a run whose harness has gone."""

    def restore(self, arguments: Mapping[str, Any], token: str, node: int, what: str) -> str:
        """Put a node back, and return how. ``arguments`` come from the run's END_NODES step. Raises PlatformError."""


@runtime_checkable
class TellsRules(Protocol):
    """A node whose network may have rules of faults."""

    def rules_left(self) -> Sequence[str]:
        """Return the rules that are still there, in words. Raises PlatformError."""


@runtime_checkable
class TellsLeft(Protocol):
    """A platform whose nodes leave something behind, which has to be removed."""

    def left(self, arguments: Mapping[str, Any], token: str) -> Sequence[str]:
        """Return the platform's leftovers of the run ``token``, in words; ``arguments`` come from its END_NODES step.

        Raises PlatformError where the leftovers cannot be known.
        """


@runtime_checkable
class RebootableNode(Protocol):
    """A node that can be rebooted. Both raise PlatformError."""

    def reboot(self, boot: str) -> None:
        """Order the node's reboot, where it is still in that boot."""

    def boot(self) -> str | None:
        """Return the present boot ID of its kernel; None while it does not answer."""
