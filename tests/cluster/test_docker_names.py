"""Names that a container of a real engine resolves no more: by the C library there, while addresses are reached."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chaos.base.registry import registry
from chaos.doctor import Machine, probe
from chaos.faults.kind import FaultMissed
from chaos.platforms.docker import names
from chaos.platforms.docker.processes import first_process
from tests.cluster.docker_engine import LACKING, netfilter
from tests.cluster.docker_run import Made, StartOn, landed, left_of
from tests.kit.shipped import shipped
from tests.rehearsal.kit import Chaos

MISSING = [result.seen for result in probe(("network-namespaces",), Machine()) if not result.ok]
pytestmark = [pytest.mark.processes, pytest.mark.skipif(bool(MISSING), reason=f"{MISSING}")]


@pytest.fixture(autouse=True)
def resolving(engine: str) -> None:
    """An engine that resolves names."""
    if LACKING in (lacking := netfilter()):
        pytest.skip(f"needs an engine that resolves names, which takes iptables: {lacking[LACKING]}")


def kind() -> Any:
    return registry("faults").load("dns-gone")


def routes(made: Made, node: int) -> str:
    """All routes of a node, in every table."""
    pid = first_process(made.nodes.all()[node].container)
    direction = ("nsenter", f"--net=/proc/{pid}/ns/net", "ip", "route", "show", "table", "all")
    return subprocess.run(direction, check=True, capture_output=True, text=True).stdout


def test_no_name_is_resolved_there_and_addresses_are_reached_until_it_is_undone(made: Made) -> None:
    before, own = routes(made, 1), Path("/etc/resolv.conf").read_bytes()
    assert kind().evidence(made.job, made.victim(1)) is None
    evidence = landed(made, kind(), 1)
    assert evidence["before"] == [made.nodes.all()[0].address] == [evidence["address"]]
    assert "name resolution" in evidence["error"] and evidence["reached"] == "refused"
    assert evidence["cut"] == ["127.0.0.11"]
    other = made.nodes.all()[0].names()
    assert (other["found"], other["error"]) == ([made.nodes.all()[0].address], None)
    assert kind().evidence(made.job, made.victim(0)) is None
    assert kind().still(made.job, made.victim(1)) == {"signal": None, "cut": ["127.0.0.11"]}
    assert not kind().ended(made.job, made.victim(1))
    assert made.undo() == ["node 1 reaches 127.0.0.11 again"]
    assert kind().ended(made.job, made.victim(1)) and kind().evidence(made.job, made.victim(1)) is None
    assert made.nodes.all()[1].names()["found"] == [made.nodes.all()[0].address]
    assert routes(made, 1) == before
    assert Path("/etc/resolv.conf").read_bytes() == own
    assert [made.job.state(launcher) for launcher in made.job.launchers] == ["alive", "alive"]
    assert made.nodes.all()[1].restore("names") == "node 1 reaches its resolvers"


@pytest.mark.nightly
def test_where_no_name_was_resolved_before_nothing_is_made(made: Made) -> None:
    node = made.nodes.all()[1]
    names.cut(node.container)
    with pytest.raises(FaultMissed, match="resolved no name before this fault was made"):
        landed(made, kind(), 1)
    assert names.mend(node.container) == ["127.0.0.11"]
    assert names.ask(node.container, sys.executable, "no-such-node")["found"] == []


@pytest.mark.nightly
def test_heal_gives_the_names_back_after_the_harness_was_killed(start_on: StartOn, fresh: Chaos, engine: str) -> None:
    scenario = shipped("plain-dns-gone")
    harness = start_on(scenario, "--cell", "node=1", "--baseline", "none")
    run = harness.run("plain-dns-gone")
    harness.event(run, "fault.landed", kind="dns-gone")
    harness.signal(signal.SIGKILL)
    harness.end()
    healed = fresh.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    assert left_of(run, engine) == []
