"""Stand-ins that keep a state: the vendor's tools, the engine of a container, and a kubelet."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from chaos.base.clock import SYSTEM_CLOCK
from chaos.machine.linux.commands import Done
from chaos.machine.linux.process import ProcessIdentity
from chaos.platforms.docker.node import DockerNode
from tests.kit.runs.recorded import FAULTY, HEALTHY, recorded
from tests.unit.conftest import FakeClock
from tests.unit.faults.undo.test_undo_cluster_nodes import kubelet
from tests.unit.platforms.kubernetes.standin_api import Cluster


class Cards:
    """The vendor's tools on a machine whose rank R is on device R; they answer as recorded, by the state of a link."""

    def __init__(self) -> None:
        self.down = False
        table = recorded("npu_smi_table", "910b2c-25.0.rc1.2")
        self._answers = {
            "npu-smi info -m": recorded("npu_smi_mapping", "910b3"),
            "npu-smi info": table.replace("33777 ", "101   ").replace("33776 ", "100   "),
            "npu-smi set -t reset -i 1 -c 0": recorded("npu_smi_reset", "ok"),
        }

    @property
    def commands(self) -> Callable[..., Done]:
        """The tools."""
        return self

    def variables(self, process: ProcessIdentity) -> Mapping[str, str]:
        """The environment of a rank."""
        return {"DEVICE_ID": str(process.pid - 100)}

    def __call__(self, *argv: str, answer: str = "") -> Done:
        call = " ".join(argv)
        if call in ("hccn_tool -i 1 -link -s down", "hccn_tool -i 1 -cfg recovery"):
            self.down = call.endswith("down")
            return Done(argv, 0, "")
        if call == "hccn_tool -i 1 -net_health -g":
            return Done(argv, 0, FAULTY if self.down else HEALTHY)
        return Done(argv, 0, self._answers[call])


_MEMORY = 1 << 34


class Container:
    """What the engine keeps of a container whose first process is ``pid``."""

    def __init__(self, pid: int) -> None:
        self.id, self.name, self.short_id = "", "node-1", "1"
        self.status, self.joined, self.limits = "running", {"job"}, dict[str, int]()
        self.pid = pid
        self.client = SimpleNamespace(info=lambda: {"MemTotal": _MEMORY}, events=lambda **asked: ())

    @property
    def attrs(self) -> dict[str, Any]:
        """As the engine's API tells it."""
        started, ended = "2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z"
        state = {"Status": self.status, "Pid": self.pid, "ExitCode": 0, "OOMKilled": False}
        quota = {"CpuQuota": max(0, self.limits.get("cpu_quota", 0))}
        networks: dict[str, Any] = {"Networks": {name: {} for name in self.joined}}
        return {
            "State": {**state, "StartedAt": started, "FinishedAt": ended},
            "HostConfig": quota,
            "NetworkSettings": networks,
        }

    def reload(self) -> None:
        """It is always what it is."""

    def exec_run(self, command: list[str], **how: bool) -> Any:
        """A program in it that looks a name up finds one."""
        fields = {"found": ["192.0.2.1"], "error": None, "reached": "refused"}
        return SimpleNamespace(exit_code=0, output=json.dumps(fields).encode())

    def pause(self) -> None:
        """Freeze it."""
        self.status = "paused"

    def unpause(self) -> None:
        """Let it go on; the engine refuses that of one that runs."""
        assert self.status == "paused"
        self.status = "running"

    @property
    def limited(self) -> dict[str, int]:
        """Its limits that are less than all there is."""
        most = {"mem_limit": _MEMORY, "memswap_limit": 2 * _MEMORY, "cpu_quota": 1 << 63}
        return {key: self.limits[key] for key in most.keys() & self.limits.keys() if 0 < self.limits[key] < most[key]}

    def update(self, **limits: int) -> None:
        """Change its limits."""
        self.limits |= limits


class RemoteHelper:
    """Reads in the container what the kernel counts there: nothing has happened yet."""

    node, lost = 1, None

    def read(self, path: str) -> bytes:
        """A file of a control group."""
        return b"1000" if path.endswith("usage_in_bytes") else b"nr_throttled 0\noom_kill 0\n"


@dataclass
class Network:
    """The job's network, as the engine has it."""

    name: str = "job"

    def connect(self, container: Container) -> None:
        """The engine refuses one that is there."""
        assert self.name not in container.joined
        container.joined.add(self.name)

    def disconnect(self, container: Container, **how: bool) -> None:
        """Take it off."""
        container.joined.remove(self.name)


@dataclass
class Nodes:
    """A job, and the nodes of its run, of which there is one that is a container."""

    own: DockerNode
    acts: set[str] = field(default_factory=set)

    def node(self, number: int) -> DockerNode:
        """The node."""
        assert number == self.own.number
        return self.own

    def restore(self, number: int, what: str) -> str:
        """Put back what a fault has done to it."""
        return self.node(number).restore(what)

    def state(self, process: ProcessIdentity) -> str:
        """Its ranks live."""
        return "alive"


class Kubelet(FakeClock):
    """Time that passes only when somebody sleeps; the kubelet says meanwhile that its node is ready."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster
        kubelet(cluster, "True")

    def wall(self) -> int:
        return SYSTEM_CLOCK.wall()

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        kubelet(self._cluster, "True")
