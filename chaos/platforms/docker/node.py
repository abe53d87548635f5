"""One node of a run that is a container: what the engine says of it, and what faults do to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaos.platforms.base import PlatformError
from chaos.platforms.children import ExitStatus
from chaos.platforms.docker.death import how_it_ended
from chaos.platforms.docker.engine import engine_errors, state_of
from chaos.platforms.hand.client import HandClient
from chaos.platforms.nodes import NodeState

if TYPE_CHECKING:
    from docker.models.containers import Container
    from docker.models.networks import Network


@dataclass
class DockerNode:
    """A container as a node. ``started`` is when the engine started it, by its own word."""

    number: int
    address: str
    private: Path
    container: Container
    network: Network | None
    hand: HandClient
    started: str
    known: NodeState = field(default="running", init=False)
    acts: set[str] = field(default_factory=set, init=False)

    def state(self) -> NodeState:
        """What the engine says."""
        with engine_errors(f"node {self.number}"):
            said = str(state_of(self.container)["Status"])
        return "running" if said == "running" else "frozen" if said == "paused" else "gone"

    def ended(self) -> ExitStatus:
        """What the engine says of the container's end."""
        return how_it_ended(self.container, self.started)

    # What faults do to it.

    def shown(self) -> dict[str, Any]:
        """What the engine says of it, as evidence."""
        with engine_errors(f"node {self.number}"):
            state = state_of(self.container)
        return {
            "container": self.container.short_id,
            "status": state["Status"],
            "exit_code": state["ExitCode"],
            "oom_killed": state["OOMKilled"],
            "connected": self.is_connected(),
        }

    def is_connected(self) -> bool:
        """Whether it was on the job's network when the engine was asked last."""
        assert self.network is not None
        return self.network.name in self.container.attrs["NetworkSettings"]["Networks"]

    def kill(self) -> None:
        """End its first process with SIGKILL, and so all."""
        with engine_errors(f"node {self.number} cannot be killed"):
            self.container.kill("SIGKILL")
        self.known = "gone"

    def pause(self) -> None:
        """Freeze every process of it."""
        self.known = "frozen"
        with engine_errors(f"node {self.number} cannot be paused"):
            self.container.pause()

    def disconnect(self) -> None:
        """Take it off the job's network."""
        assert self.network is not None
        with engine_errors(f"node {self.number} cannot be disconnected"):
            self.network.disconnect(self.container, force=True)

    def restore(self, what: str) -> str:
        """Undo ``pause`` (``unpause``) or ``disconnect`` (``connect``)."""
        done = restore(self.container, self.network, self.number, what)
        if what == "unpause" and self.state() == "running":
            self.known = "running"
        return done


def restore(container: Container, network: Network | None, node: int, what: str) -> str:
    """Put back what a fault has done to a node, by the word of its undo step, and say how. Raises PlatformError."""
    with engine_errors(f"node {node}: {what}"):
        container.reload()
        if what == "unpause":
            if container.status != "paused":
                return f"node {node} is not paused"
            container.unpause()
            return f"node {node} goes on"
        if what == "connect" and network is not None:
            if network.name in container.attrs["NetworkSettings"]["Networks"]:
                return f"node {node} is on the network"
            network.connect(container)
            return f"node {node} is on the network again"
    raise PlatformError(f"node {node}: there is no way to {what} it")
