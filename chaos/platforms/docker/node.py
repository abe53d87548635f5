"""A container as one node of a run: its state by the engine, and what faults do to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenacity import Retrying, retry_if_exception, stop_after_attempt

from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.children import ExitStatus
from chaos.machine.remote.client import HelperClient
from chaos.platforms.docker import names
from chaos.platforms.docker.death import how_it_ended
from chaos.platforms.docker.engine import engine_errors, state_of
from chaos.platforms.docker.limits import (
    free_memory,
    free_processors,
    kernel_kills,
    limit_memory,
    limit_processors,
    memory_used,
    oom_events,
    throttled,
)
from chaos.platforms.docker.processes import process_here
from chaos.platforms.docker.volume import give_back, take_directory
from chaos.platforms.nodes import NodeState

if TYPE_CHECKING:
    from docker.models.containers import Container
    from docker.models.networks import Network

    from chaos.platforms.network.links import NodeNetwork

_PAUSES = 10
"""How often the engine is asked to freeze a container, in all."""


def _is_given_up(error: BaseException) -> bool:
    """Return whether runc has given up freezing a container; the container is then as it was before."""
    return "unable to freeze" in str(error)


@dataclass
class DockerNode:
    """A container as a node. ``started`` is its start time by the engine."""

    number: int
    address: str
    private: Path
    container: Container
    network: Network | None
    helper: HelperClient
    started: str
    known: NodeState = field(default="running", init=False)
    place: Mapping[str, Any] = field(default_factory=dict, init=False)
    node_network: NodeNetwork | None = field(default=None, init=False)
    acts: set[str] = field(default_factory=set, init=False)
    limit: int | None = field(default=None, init=False)
    python: str = field(default="python3", init=False)
    _resolved: list[str] = field(default_factory=list, init=False)
    _throttled: int | None = field(default=None, init=False)
    _before: tuple[int, int] = field(default=(0, 0), init=False)

    def state(self) -> NodeState:
        """Return the state by the engine.

        A container started again since is gone: nothing that ran in it still runs.
        """
        with engine_errors(f"node {self.number}"):
            state = state_of(self.container)
        if state["StartedAt"] != self.started:
            return "gone"
        status = str(state["Status"])
        return "running" if status == "running" else "frozen" if status == "paused" else "gone"

    def ended(self) -> ExitStatus:
        """Return how the container ended, by the engine."""
        return how_it_ended(self.container, self.started)

    # What faults do to it.

    def shown(self) -> dict[str, Any]:
        """Return the engine's state of the container, as evidence."""
        with engine_errors(f"node {self.number}"):
            state = state_of(self.container)
        return {
            "container": self.container.short_id,
            "status": state["Status"],
            "exit_code": state["ExitCode"],
            "oom_killed": state["OOMKilled"],
            "connected": self.is_connected(),
            "started": state["StartedAt"],
            "finished": state["FinishedAt"],
            "restarted": state["StartedAt"] != self.started,
        }

    def is_connected(self) -> bool:
        """Return whether it was on the job's network at the engine's last answer."""
        assert self.network is not None
        return self.network.name in self.container.attrs["NetworkSettings"]["Networks"]

    def out_of_memory(self) -> dict[str, Any]:
        """Return the records of the engine and the kernel of its lack of memory since the last fault limited memory."""
        events, kills = self._counts()
        return {"limit": self.limit, "oom_events": events - self._before[0], "oom_kills": kills - self._before[1]}

    def _counts(self) -> tuple[int, int]:
        return oom_events(self.container, self.started), kernel_kills(self.helper)

    def waited(self) -> int:
        """Return the periods in which it had to wait since its processor time was limited; 0 while it is not."""
        return 0 if self._throttled is None else throttled(self.helper) - self._throttled

    def quota(self) -> int:
        """Return the microseconds of processor time that the engine gives it per tenth of a second; 0: no limit."""
        with engine_errors(f"node {self.number}"):
            self.container.reload()
            return max(0, int(self.container.attrs["HostConfig"]["CpuQuota"]))

    def kill(self) -> None:
        """End its first process with SIGKILL, and so all processes."""
        with engine_errors(f"node {self.number} cannot be killed"):
            self.container.kill("SIGKILL")
        self.known = "gone"

    def stop(self, grace: float) -> None:
        """Ask its first process to end, and end it with SIGKILL after ``grace`` seconds, and so all processes.

        The first process of a node ignores the request and does not pass it on: everything on the node runs until the
        grace is over.
        """
        with engine_errors(f"node {self.number} cannot be stopped"):
            self.container.stop(timeout=math.ceil(grace))
        self.known = "gone"

    def restart(self) -> None:
        """End everything on it at once, and start it again with nothing on it."""
        with engine_errors(f"node {self.number} cannot be restarted"):
            self.container.restart(timeout=0)
        self.known = "gone"

    def limit_memory(self, fault: str, spare: int) -> int:
        """Let it take so many bytes more than it has now; return the limit in bytes.

        Kills counted before are not the fault's.
        """
        if fault not in self.acts:
            self._before = self._counts()
            self.acts.add(fault)
        if self.limit is None:
            limit = memory_used(self.helper) + spare
            limit_memory(self.container, limit)
            self.limit = limit
        return self.limit

    def limit_processors(self, cores: float) -> None:
        """Limit all of its ranks together to the time of so many cores."""
        if self._throttled is None:
            before = throttled(self.helper)
            limit_processors(self.container, cores)
            self._throttled = before

    def pause(self) -> None:
        """Freeze all of its processes.

        runc gives up and thaws all of them where a process does not stop in time, as on a busy machine; the engine is
        asked again then.
        """
        again = Retrying(retry=retry_if_exception(_is_given_up), stop=stop_after_attempt(_PAUSES), reraise=True)
        with engine_errors(f"node {self.number} cannot be paused"):
            again(self.container.pause)
        self.known = "frozen"

    def disconnect(self) -> None:
        """Disconnect it from the job's network."""
        assert self.network is not None
        with engine_errors(f"node {self.number} cannot be disconnected"):
            self.network.disconnect(self.container, force=True)

    def take_directory(self, directory: Path) -> None:
        """Make the path a directory without content for it."""
        take_directory(self.container, directory)

    def process_here(self, pid: int) -> int:
        """Return the PID on this host of a process of it."""
        return process_here(self.container, pid)

    def names(self) -> dict[str, Any]:
        """Return the addresses that a program in it gets for the name of node 0, where the scheduler is."""
        name = f"{str(self.container.name).rpartition('-')[0]}-0"  # not its own host name: that is in /etc/hosts
        address = self._resolved[0] if self._resolved else ""
        return {"name": name, "before": self._resolved, "address": address} | names.ask(
            self.container, self.python, name, address
        )

    def cut_names(self, before: dict[str, Any]) -> None:
        """Make its resolvers unreachable."""
        names.cut(self.container)
        self._resolved = list(before["found"])

    def names_cut(self) -> list[str]:
        """Return the unreachable resolvers; none where it has ended."""
        return [] if self.state() == "gone" else names.blocked(self.container)

    def restore(self, what: str) -> str:
        """Undo one change that a fault has made.

        ``what`` names the change: ``pause`` (``unpause``), ``disconnect`` (``connect``), ``take_directory``
        (``directories``), ``cut_names`` (``names``) or a limit (``memory``, ``processors``).
        """
        done = restore(self.container, self.network, self.number, what)
        if what == "names":
            self._resolved = []
        if what == "memory":
            self.limit = None
        if what == "processors":
            self._throttled = None
        if what == "unpause" and self.state() == "running":
            self.known = "running"
        return done


def restore(container: Container, network: Network | None, node: int, what: str) -> str:
    """Put back what a fault has done to a node, as its undo step says, and return how. Raises PlatformError."""
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
        if what in ("directories", "names") and container.status not in ("running", "paused"):
            return f"node {node} has ended, and what was taken from it is there again with it"
        if what == "names":
            mended = names.mend(container)
            return f"node {node} reaches {', '.join(mended)} again" if mended else f"node {node} reaches its resolvers"
        if what == "directories":
            paths = give_back(container)
            return f"node {node} has {', '.join(paths)} again" if paths else f"nothing is taken from node {node}"
        if what == "memory":
            free_memory(container)
            return f"node {node} has the host's memory again"
        if what == "processors":
            free_processors(container)
            return f"node {node} has all processor time again"
    raise PlatformError(f"node {node}: there is no way to {what} it")
