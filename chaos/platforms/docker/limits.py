"""Limits that the engine's ``update`` puts on a running container, and the kernel's counters there.

The kernel's counters are read inside the container, below /sys/fs/cgroup (cgroups(7), both versions). The engine's own
field ``OOMKilled`` stays false while the container runs, so it proves nothing here; its event ``oom`` does.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from chaos.machine.job.protocol import HelperLost, PlatformError
from chaos.machine.remote.client import HelperClient
from chaos.platforms.docker.death import seconds_of
from chaos.platforms.docker.engine import engine_errors

if TYPE_CHECKING:
    from docker.models.containers import Container

CGROUPS = "/sys/fs/cgroup"
"""Where a container sees its own control groups."""

PERIOD = 100_000
"""Microseconds over which processor time is counted; the engine's default."""

_USED = ("memory/memory.usage_in_bytes", "memory.current")
_KILLED = ("memory/memory.oom_control", "memory.events")
_SLOWED = ("cpu/cpu.stat", "cpu,cpuacct/cpu.stat", "cpu.stat")
_LEAST_QUOTA = 1000


def memory_used(helper: HelperClient) -> int:
    """Return the bytes that the container's processes and their files in memory use. Raises PlatformError."""
    return int(_read(helper, _USED))


def kernel_kills(helper: HelperClient) -> int:
    """Return how many processes of the container the kernel has ended for lack of memory. Raises PlatformError."""
    return _counted(helper, _KILLED, "oom_kill")


def throttled(helper: HelperClient) -> int:
    """Return the number of periods in which the container had to wait for processor time. Raises PlatformError."""
    return _counted(helper, _SLOWED, "nr_throttled")


def oom_events(container: Container, since: str) -> int:
    """Return how often the engine has reported since that time (RFC 3339) that the container was out of memory."""
    assert container.client is not None
    begin: Any = seconds_of(since)  # the client's own types know whole seconds only
    with engine_errors(f"events of {container.name}"):
        events = container.client.events(
            since=begin,
            until=int(time.time()) + 1,
            decode=True,
            filters={"event": "oom", "container": container.id},
        )
        return sum(1 for event in events if event.get("Action") == "oom")


def limit_memory(container: Container, limit: int) -> None:
    """Limit the container to this many bytes, without swap. Raises PlatformError."""
    with engine_errors(f"the memory of {container.name} cannot be limited"):
        container.update(mem_limit=limit, memswap_limit=limit)


def free_memory(container: Container) -> None:
    """Give the container all of the host's memory, and as much swap: the engine has no word for "no limit".

    Raises PlatformError.
    """
    assert container.client is not None
    with engine_errors(f"the memory of {container.name} cannot be given back"):
        whole = int(container.client.info()["MemTotal"])
        # Not -1 for the swap: the engine then keeps its limit, and the kernel refuses a memory limit above it.
        container.update(mem_limit=whole, memswap_limit=2 * whole)


def limit_processors(container: Container, cores: float) -> int:
    """Limit the container to the time of so many cores; return the quota in microseconds per period.

    Raises PlatformError.
    """
    quota = max(_LEAST_QUOTA, int(cores * PERIOD))
    with engine_errors(f"the processor time of {container.name} cannot be limited"):
        container.update(cpu_period=PERIOD, cpu_quota=quota)
    return quota


def free_processors(container: Container) -> None:
    """Give the container all available processor time. Raises PlatformError."""
    with engine_errors(f"the processor time of {container.name} cannot be given back"):
        container.update(cpu_quota=-1)


def _counted(helper: HelperClient, files: tuple[str, ...], key: str) -> int:
    lines = [line.split() for line in _read(helper, files).splitlines()]
    for line in lines:
        if len(line) == 2 and line[0] == key and line[1].isdecimal():
            return int(line[1])
    raise PlatformError(f"node {helper.node}: the kernel does not count {key} there")


def _read(helper: HelperClient, files: tuple[str, ...]) -> str:
    for file in files:
        with contextlib.suppress(PlatformError):
            return helper.read(f"{CGROUPS}/{file}").decode("ascii", "replace")
        if helper.lost is not None:
            raise HelperLost(f"node {helper.node}: its remote helper was lost: {helper.lost}")
    raise PlatformError(f"node {helper.node}: none of {', '.join(files)} is below {CGROUPS}")
