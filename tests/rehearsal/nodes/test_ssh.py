"""Jobs on hosts that are reached by SSH: judged as on one machine, and nothing is left there, whatever happens.

The hosts are made of namespaces: each has its own address, processes, name, boot and monotonic clock.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.doctor import Machine, probe
from chaos.machine.remote.bundle import BUNDLE
from tests.kit.hosts.ssh_hosts import AHEAD_SECONDS, TestHost, TestHosts, namespace_hosts
from tests.kit.runs.recorded_bases import SCENARIOS as RECORDED
from tests.kit.runs.recorded_bases import hold_against
from tests.rehearsal.kit import SCENARIOS, Chaos, Harness, Run

PLAIN = "plain-kill-rank.yaml"
TABLES = """
from chaos.machine.linux.net.netfilter import DEVICE, tables
print(*tables("chaos_"), *tables("chaos_", DEVICE))
"""
(IMPAIRMENT,) = probe(("impairment",), Machine())
WITH_NETEM = pytest.mark.skipif("relay" in IMPAIRMENT.seen, reason=f"hosts need netem: {IMPAIRMENT.seen}")
STALLED = SCENARIOS / "plain-stalled.yaml"
REBOOT = SCENARIOS / "plain-node-reboot.yaml"


@pytest.fixture
def hosts() -> Iterator[TestHosts]:
    # Not pytest's own directory: the path of a Unix socket has to be short.
    with (
        tempfile.TemporaryDirectory(prefix="hosts-") as place,
        namespace_hosts(Path(place, "h"), ("first", "second")) as made,
    ):
        yield made


@pytest.fixture
def on_hosts(fresh: Chaos, hosts: TestHosts) -> Chaos:
    """The command line where it can reach the hosts."""
    fresh.prefix = hosts.prefix
    return fresh


def arguments(hosts: TestHosts) -> tuple[str, ...]:
    return "--platform", "ssh", "--inventory", str(hosts.inventory)


def left_on(hosts: TestHosts) -> list[str]:
    """What is left of runs in the directories of the hosts."""
    return [str(path) for host in hosts.hosts for path in host.work.iterdir()]


def test_an_unchanged_scenario_passes_on_two_hosts_with_clocks_of_their_own(on_hosts: Chaos, hosts: TestHosts) -> None:
    done = on_hosts.run(PLAIN, *arguments(hosts))
    assert done.code == 0, done.errors + done.output
    clocks = {clock["host"]: clock for clock in done.run.result["clocks"]}
    assert [round(clocks[name]["offset"]) for name in ("first", "second")] == [AHEAD_SECONDS, 2 * AHEAD_SECONDS]
    assert all(
        0 < clock["error"] < 0.5 and clock["measurements"] >= 4 and not clock["same"] for clock in clocks.values()
    )
    found = {event.rank: event.data["node"] for event in done.run.history.select("rank.found", attempt="train")}
    assert found == {0: 0, 1: 0, 2: 1, 3: 1}
    assert [host["name"] for host in done.run.result["made"]["hosts"]] == ["first", "second"]
    assert left_on(hosts) == []
    assert done.run.left() == []


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", ["kill-rank.yaml", "kill-node.yaml"])
def test_a_mindspore_job_passes_on_two_hosts(on_hosts: Chaos, hosts: TestHosts, scenario: str) -> None:
    done = on_hosts.run(scenario, *arguments(hosts))
    assert done.code == 0, done.errors + done.output
    assert left_on(hosts) == []


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", ["pause.yaml", "straggler.yaml"])
def test_conditions_of_ranks_pass_on_two_hosts_from_the_same_file(
    on_hosts: Chaos, hosts: TestHosts, scenario: str
) -> None:
    done = on_hosts.run(scenario, *arguments(hosts))
    assert done.code == 0, done.errors + done.output
    assert left_on(hosts) == []
    assert done.run.left() == []


def rules_on(host: TestHost) -> list[str]:
    """The tables of runs that the kernel has in the network of a host."""
    inside = ("nsenter", f"--net=/proc/{host.process}/ns/net", sys.executable, "-c", TABLES)
    return subprocess.run(inside, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.nightly
def test_an_unchanged_partition_passes_between_two_hosts(on_hosts: Chaos, hosts: TestHosts) -> None:
    done = on_hosts.run("partition.yaml", *arguments(hosts), "--cell", "direction=both")
    assert done.code == 0, done.errors + done.output
    (landed,) = done.run.history.select("fault.landed")
    for shown in landed.data["evidence"]:
        assert (shown["lost"], shown["echoes"]) == ([[1, 0], [0, 1]], {"sent": 2, "answered": 0})
    assert done.run.history.select("fault.healed")
    assert [rules_on(host) for host in hosts.hosts] == [[], []]
    assert left_on(hosts) == []
    assert done.run.left() == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("scenario", "options"),
    [
        ("partition.yaml", ("--cell", "direction=out")),
        ("partition.yaml", ("--cell", "direction=in")),
        ("plain-partition-lasts.yaml", ()),
        ("plain-partition-heals.yaml", ()),
        ("plain-network-loss.yaml", ()),
        ("plain-network-rate.yaml", ()),
        pytest.param("plain-network-delay.yaml", (), marks=WITH_NETEM),
        ("port-blocked.yaml", ("--cell", "port=controller,direction=in")),
        ("port-blocked.yaml", ("--cell", "port=communicator,direction=both")),
        ("connection-reset.yaml", ()),
    ],
)
def test_faults_of_the_network_pass_unchanged_between_two_hosts(
    on_hosts: Chaos, hosts: TestHosts, scenario: str, options: tuple[str, ...]
) -> None:
    done = on_hosts.run(scenario, *arguments(hosts), *options)
    assert done.code == 0, done.errors + done.output
    assert done.run.history.select("fault.landed")
    assert done.run.history.select("fault.healed")
    assert [rules_on(host) for host in hosts.hosts] == [[], []]
    assert left_on(hosts) == []
    assert done.run.left() == []


@pytest.mark.nightly
def test_an_unchanged_port_is_blocked_between_two_hosts_and_another_one_answers(
    on_hosts: Chaos, hosts: TestHosts
) -> None:
    done = on_hosts.run("port-blocked.yaml", *arguments(hosts), "--cell", "port=controller,direction=both")
    assert done.code == 0, done.errors + done.output
    (landed,) = done.run.history.select("fault.landed")
    for shown in landed.data["evidence"]:
        assert (sorted(shown["lost"]), sorted(shown["passing"])) == ([[0, 1], [1, 0]], [[0, 1], [1, 0]])
        assert (shown["attempts"], shown["attempts elsewhere"]) == (
            {"made": 1, "answered": 0},
            {"made": 1, "answered": 1},
        )
    assert done.run.history.select("fault.healed")
    assert [rules_on(host) for host in hosts.hosts] == [[], []]
    assert left_on(hosts) == []
    assert done.run.left() == []


@pytest.mark.skipif("relay" not in IMPAIRMENT.seen, reason="the hosts' kernel has netem")
@pytest.mark.nightly
def test_a_delay_is_refused_by_name_before_the_start_where_a_hosts_kernel_has_no_netem(
    on_hosts: Chaos, hosts: TestHosts
) -> None:
    done = on_hosts.run("plain-network-delay.yaml", *arguments(hosts), "--baseline", "none")
    assert done.code == 64, done.errors + done.output
    message = "faults cannot change its network: node 0: network_check: network-delay cannot be made there"
    assert message in done.errors + done.output
    assert "the kernel has no netem (sch_netem)" in done.errors + done.output
    assert not any(run.history.select("agent.start") for run in on_hosts.runs())
    assert [rules_on(host) for host in hosts.hosts] == [[], []]
    assert left_on(hosts) == []


def test_a_host_is_not_changed_without_the_inventorys_word(on_hosts: Chaos, hosts: TestHosts, tmp_path: Path) -> None:
    text = hosts.inventory.read_text("utf-8")
    head, _, tail = text.rpartition("    network: true\n")
    silent = tmp_path / "silent.yaml"
    silent.write_text(head + tail)
    asked = ("--platform", "ssh", "--inventory", str(silent))
    for command in (on_hosts("plan", "partition.yaml", *asked), on_hosts.run("partition.yaml", *asked)):
        assert command.code == 64, command.errors
        assert "does not let faults change the network of host second" in command.errors + command.output
        assert "host first" not in command.errors + command.output
    assert left_on(hosts) == []


UNTIL_KILLED = """
from chaos.faults.network import network_delay, partition, port_blocked
for kind in (network_delay.NetworkDelay, partition.Partition, port_blocked.PortBlocked):
    kind.lasts = lambda self, victim: 600.0
"""
"""Python that makes the harness wait for its end in the fault."""


@pytest.mark.nightly
@pytest.mark.parametrize("helpers", ["live", "killed"])
@pytest.mark.parametrize(
    ("kind", "scenario", "options", "tables"),
    [
        ("partition", "partition", ("--cell", "direction=both"), [1, 1]),
        ("port-blocked", "port-blocked", ("--cell", "port=controller,direction=both"), [1, 1]),
        pytest.param("network-delay", "plain-network-delay", (), [0, 1], marks=WITH_NETEM),
    ],
)
def test_heal_mends_the_hosts_after_the_harness_was_killed_in_the_fault(
    on_hosts: Chaos,
    hosts: TestHosts,
    kind: str,
    scenario: str,
    options: tuple[str, ...],
    tables: list[int],
    helpers: str,
) -> None:
    harness = on_hosts.start_run(
        f"{scenario}.yaml", *arguments(hosts), *options, "--baseline", "none", patch=UNTIL_KILLED
    )
    run = harness.run(scenario)
    harness.event(run, "fault.landed", kind=kind)
    harness.signal(signal.SIGSTOP)
    assert [len(rules_on(host)) for host in hosts.hosts] == tables
    if helpers == "killed":
        for pid in hands_of(run):
            os.kill(pid, signal.SIGKILL)
    harness.signal(signal.SIGKILL)
    harness.end()
    if helpers == "killed":
        assert [len(rules_on(host)) for host in hosts.hosts] == tables
    else:  # a remote helper ends with its harness, and what it has laid with it
        wait_for("end", lambda: not any(map(rules_on, hosts.hosts)), seconds=60, clock=SYSTEM_CLOCK)
    healed = on_hosts.heal()
    assert healed.code == 0, healed.errors + healed.output
    assert f"removed {sum(tables) if helpers == 'killed' else 0} rules from the hosts" in healed.output
    assert [rules_on(host) for host in hosts.hosts] == [[], []]
    assert left_on(hosts) == []
    assert run.left() == []


def hands_of(run: Run) -> list[int]:
    """The remote helpers of a run, by their PIDs here."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if f"chaos-{run.token[-16:]}-" in (text := path.read_text()) and text.rstrip("\0").endswith(BUNDLE):
                found.append(int(path.parent.name))
    assert len(found) == 2, found
    return found


@pytest.mark.nightly
def test_a_host_that_does_not_answer_stays_to_be_mended_by_the_next_heal(on_hosts: Chaos, hosts: TestHosts) -> None:
    cell = ("--cell", "direction=both", "--baseline", "none")
    harness = on_hosts.start_run("partition.yaml", *arguments(hosts), *cell, patch=UNTIL_KILLED)
    run = harness.run("partition")
    harness.event(run, "fault.landed", kind="partition")
    harness.signal(signal.SIGSTOP)
    for pid in hands_of(run):
        os.kill(pid, signal.SIGKILL)
    harness.signal(signal.SIGKILL)
    harness.end()
    link = (*hosts.prefix, "ip", "link", "set", "to-second")
    subprocess.run([*link, "down"], check=True)
    first = on_hosts.heal()
    assert first.code == 3
    assert [len(rules_on(host)) for host in hosts.hosts] == [0, 1]
    assert any("partition" in one for one in run.left())
    subprocess.run([*link, "up"], check=True)
    again = on_hosts.heal()
    assert again.code == 0, again.errors + again.output
    assert [rules_on(host) for host in hosts.hosts] == [[], []]
    assert left_on(hosts) == []
    assert run.left() == []


def in_training(chaos: Chaos, hosts: TestHosts) -> tuple[Harness, Run]:
    """A harness whose ranks all train, on both hosts, and will for a while."""
    harness = chaos.start_run(STALLED, *arguments(hosts))
    run = harness.run("plain-stalled")
    for rank in range(4):
        harness.event(run, "step.end", rank=rank, step=2)
    return harness, run


def test_after_a_killed_harness_heal_leaves_nothing_on_the_hosts(on_hosts: Chaos, hosts: TestHosts) -> None:
    harness, run = in_training(on_hosts, hosts)
    harness.signal(signal.SIGKILL)
    harness.end()
    assert len(left_on(hosts)) == 2
    healed = on_hosts.heal()
    assert healed.code == 0, healed.errors + healed.output
    assert left_on(hosts) == []
    assert run.left() == []
    again = on_hosts.heal()
    assert again.code == 0, again.errors


@pytest.mark.nightly
def test_a_host_that_vanishes_is_a_fact_and_the_run_is_judged(on_hosts: Chaos, hosts: TestHosts) -> None:
    harness, run = in_training(on_hosts, hosts)
    hosts.hosts[1].signal(signal.SIGKILL)
    done = harness.end()
    assert done.code in (1, 2), done.errors
    (gone,) = run.history.select("host.vanished")
    assert (gone.data["node"], gone.data["host"], gone.data["seconds"]) == (1, "second", 3.0)
    ended = {event.rank: (event.data["signal"], event.data["code"]) for event in run.history.select("rank.exit")}
    assert ended[2] == ended[3] == (None, None)
    assert run.result["verdict"] in ("fail", "unknown")
    assert left_on(hosts) == [str(hosts.hosts[1].work / path.name) for path in hosts.hosts[1].work.iterdir()]
    healed = on_hosts.heal()
    assert healed.code == 3
    assert "second" in healed.output + healed.errors


@pytest.mark.nightly
def test_a_host_whose_sshd_is_restarted_is_lost_from_sight_and_cleaned_afterwards(
    on_hosts: Chaos, hosts: TestHosts
) -> None:
    harness, run = in_training(on_hosts, hosts)
    hosts.hosts[1].signal(signal.SIGUSR2)
    done = harness.end()
    assert done.code == 2, done.errors
    assert [event.data["node"] for event in run.history.select("host.lost")] == [1]
    assert left_on(hosts) == []
    assert run.left() == []


@pytest.mark.nightly
def test_a_rebooted_host_is_told_by_its_boot(on_hosts: Chaos, hosts: TestHosts) -> None:
    done = on_hosts.run(REBOOT, *arguments(hosts))
    run = done.run
    (landed,) = run.history.select("fault.landed")
    assert {entry["rank"] for entry in landed.data["evidence"]} == {2, 3}
    boots = [entry["boot"] for entry in landed.data["evidence"]]
    assert all(boot["before"] != boot["after"] for boot in boots)
    assert run.history.first("host.reboot", node=1) is not None
    assert done.code == 0, done.errors + done.output
    assert left_on(hosts) == []


@pytest.mark.nightly
def test_the_recorded_run_of_a_rebooted_host_is_as_one_that_is_made_today(
    on_hosts: Chaos, hosts: TestHosts, tmp_path: Path
) -> None:
    done = on_hosts.run(RECORDED / "host-reboot.yaml", *arguments(hosts))
    assert done.code == 0, done.errors + done.output
    hold_against("host-reboot", done.run.path, tmp_path)
    assert left_on(hosts) == []


def test_an_unknown_host_key_is_refused_with_what_to_do(on_hosts: Chaos, hosts: TestHosts, tmp_path: Path) -> None:
    text = hosts.inventory.read_text("utf-8")
    strange = tmp_path / "strange.yaml"
    fingerprint = hosts.hosts[0].fingerprint
    strange.write_text(
        text.replace(f"    fingerprint: {fingerprint}\n", "", 1).replace("hosts:", "known_hosts: none\nhosts:", 1)
    )
    done = on_hosts.run(PLAIN, "--platform", "ssh", "--inventory", str(strange))
    assert done.code == 64
    assert fingerprint in done.errors
    assert "as 'fingerprint'" in done.errors
    assert left_on(hosts) == []
