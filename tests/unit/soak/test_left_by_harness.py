"""What a killed harness has started and what has to end with it is found by its session, and so are its networks."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.doctor import Machine, probe
from chaos.machine.linux.net.namespace import Namespace
from chaos.machine.linux.process import has_ended, identify, state
from chaos.platforms.network.addressing import link_of
from chaos.platforms.network.leftovers import LINK
from chaos.platforms.network.relays import _device
from chaos.platforms.network.router import Router
from chaos.soak import left_by_harness as module
from chaos.soak.left_by_harness import left_by_harness, networks_of
from chaos.soak.leftovers import leftovers

LACKING = [result for result in probe(("network-namespaces", "tbf"), Machine()) if not result.ok]
needs_namespaces = pytest.mark.skipif(bool(LACKING), reason=f"{LACKING and LACKING[0].seen}")

NOBODY = 2**22 + 1
"""A PID that Linux never gives."""
HARNESS = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:])
print(child.pid, flush=True)
child.wait()
"""


@contextlib.contextmanager
def started_by_a_killed_harness(*command: str) -> Iterator[tuple[int, int]]:
    """The PIDs of a harness that is no more, and of what it has started, which lives."""
    argv = [sys.executable, "-c", HARNESS, *command]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as harness:
        assert harness.stdout is not None
        child = identify(int(harness.stdout.readline()))
        harness.kill()
        harness.wait()
    try:
        yield harness.pid, child.pid
    finally:
        if not has_ended(state(child)):
            os.kill(child.pid, signal.SIGKILL)


def test_what_outlives_its_harness_is_found(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_END_SECONDS", 0.1)
    reports.mkdir()
    with started_by_a_killed_harness("sleep", "1000") as (harness, child):
        message = f"process {child}: sleep 1000, which has to end with its harness"
        assert leftovers(reports, harness) == [message]
        assert leftovers(reports, NOBODY, harness) == [message]


def test_a_session_of_somebody_else_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_END_SECONDS", 0.1)
    with subprocess.Popen(("sleep", "1000"), start_new_session=True) as leader:
        try:
            assert left_by_harness([leader.pid]) == [], "who leads that session lives: the number was used again"
        finally:
            leader.kill()
    assert left_by_harness([0]) == [], "whoever leads that session is outside of this PID namespace"


def test_what_ends_a_moment_later_is_not_blamed() -> None:
    with started_by_a_killed_harness("sleep", "0.5") as (harness, _):
        assert left_by_harness([harness]) == []


@needs_namespaces
def test_a_network_that_is_held_is_told_with_all_that_is_in_it(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_END_SECONDS", 0.1)
    reports.mkdir()
    with started_by_a_killed_harness("unshare", "--net", "--", "sleep", "1000") as (harness, child):
        own = os.readlink("/proc/self/ns/net")  # noqa: PTH115
        held = Path(f"/proc/{child}/ns/net")
        wait_for("namespace", lambda: str(held.readlink()) != own, seconds=60, clock=SYSTEM_CLOCK)
        namespace = Namespace(identify(child))
        namespace.do("ip", "link", "add", link_of(0), "type", "veth", "peer", "name", "other")
        router = Router(namespace)
        router.cut("cut", [(0, 1)])
        router.slow("slow", 0, 1000)
        found = leftovers(reports, harness)
        assert found[0].startswith(f"process {child}: ") and len(found) == 2
        assert (
            found[1].startswith(f"network {held.readlink()} is held by process {child}: ") and "link node0" in found[1]
        )
        assert "rule: what comes from 10.77.0.2 for 10.77.0.6 vanishes" in found[1] and "tbf on node0" in found[1]
        assert len(networks_of([child, child])) == 1
    assert networks_of([os.getpid(), NOBODY]) == [], "one's own, and that of a process that is no more"


def test_the_names_of_a_routers_links_are_those_that_are_looked_for() -> None:
    assert all(LINK.fullmatch(name) for node in (0, 12) for name in (link_of(node), _device(node)))
    assert not LINK.fullmatch("eth0") and not LINK.fullmatch("node0.1")
