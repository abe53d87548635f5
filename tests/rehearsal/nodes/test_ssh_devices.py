"""Faults of devices on hosts that are reached by SSH: the vendor's tools are run where the rank is, and nowhere else.

The tools are played by programs with their documented words, and the ranks are plain ones that say they train on
Ascend: what is shown is the way to the host and back, not what a device does.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.hosts.played_tools import write_tools
from tests.kit.hosts.ssh_hosts import TestHost, TestHosts, namespace_hosts
from tests.rehearsal.kit import Chaos, Run

pytestmark = pytest.mark.nightly

ON_ASCEND = """
from dataclasses import replace
from chaos.rehearsal.plain.job import PlainJob
PlainJob.traits = replace(PlainJob.traits, devices=frozenset({"Ascend"}))
"""
SCENARIO = """\
chaos: 1
name: link-of-a-host
cluster: {ranks: 4, nodes: 2}
job: {kind: plain, device: Ascend, timings: fast, steps: 40, checkpoint_interval: 5}
allow: [npu-link-down, device-reset]
faults: [{id: down, kind: npu-link-down, target: {rank: 3}, trigger: {step: 4}}]
"""


@pytest.fixture
def hosts() -> Iterator[TestHosts]:
    with (
        tempfile.TemporaryDirectory(prefix="hosts-") as place,
        namespace_hosts(Path(place, "h"), ("first", "second")) as made,
    ):
        for host in made.hosts:
            write_tools(host.tools, host.place)
        yield made


@pytest.fixture
def on_hosts(fresh: Chaos, hosts: TestHosts) -> Chaos:
    fresh.prefix = hosts.prefix
    (fresh.reports.parent / "link.yaml").write_text(SCENARIO)
    return fresh


def arguments(on_hosts: Chaos, hosts: TestHosts) -> tuple[str, ...]:
    inventory = ("--platform", "ssh", "--inventory", str(hosts.inventory))
    return (str(on_hosts.reports.parent / "link.yaml"), *inventory, "--baseline", "none")


def is_down(host: TestHost) -> bool:
    return (host.place / "down").exists()


def test_the_link_of_a_ranks_card_goes_down_on_its_host_alone_and_comes_up_again(
    on_hosts: Chaos, hosts: TestHosts
) -> None:
    done = on_hosts.run(*arguments(on_hosts, hosts), patch=ON_ASCEND)
    history = done.run.history
    (landed,) = history.select("fault.landed")
    (evidence,) = landed.data["evidence"]
    assert (evidence["rank"], evidence["device"]["card"]) == (3, 1)
    assert evidence["net_health"] == {"before": "Success", "after": "Fault"}
    (healed,) = history.select("fault.healed")
    assert healed.data["how"] == "recovered the network of card 1 on the host of node 1: net health Success"
    assert [is_down(host) for host in hosts.hosts] == [False, False]
    assert [event.data["node"] for event in history.select("quarantine")] == ["first", "second"]
    found = {(check["name"], check["verdict"]) for check in done.run.result["checks"] if check["verdict"] != "pass"}
    # Ranks on a CPU do not feel the link and end as if nothing had been; of quarantined cards nobody can be asked.
    assert found == {("hygiene", "fail"), ("hygiene", "unknown")}


def test_after_a_killed_harness_heal_brings_the_link_up_again(on_hosts: Chaos, hosts: TestHosts) -> None:
    harness = on_hosts.start_run(*arguments(on_hosts, hosts), patch=ON_ASCEND)
    run: Run = harness.run("link-of-a-host")
    harness.event(run, "fault.landed")
    assert [is_down(host) for host in hosts.hosts] == [False, True]
    harness.signal(signal.SIGKILL)
    harness.end()
    healed = on_hosts.heal()
    assert (healed.code, healed.json["healed"]) == (0, True), healed.output
    assert "recovered the network of card 1 on the host of node 1" in healed.output
    assert [is_down(host) for host in hosts.hosts] == [False, False]
    assert [path for host in hosts.hosts for path in host.work.iterdir()] == []


def test_a_host_without_the_tools_is_refused_by_name_before_the_job_starts(on_hosts: Chaos, hosts: TestHosts) -> None:
    (hosts.hosts[1].tools / "hccn_tool").unlink()
    done = on_hosts.run(*arguments(on_hosts, hosts), patch=ON_ASCEND)
    assert done.code == 64, done.errors
    assert "second" in done.errors and "npu-link-down cannot be made there: there is no hccn_tool" in done.errors
    assert [path for host in hosts.hosts for path in host.work.iterdir()] == []
