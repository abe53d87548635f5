"""What goes between hosts is cut by the hosts themselves: silently, only between them, and each fault by itself.

The same is true of what waits there, and of connections that are reset.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.doctor import Machine, probe
from chaos.machine.job.processes import RUN_VARIABLE
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.net.echo import ask
from chaos.machine.linux.net.ifb_delay import too_old
from chaos.machine.linux.net.netfilter import Rule
from chaos.machine.linux.net.ports import Ports
from chaos.platforms.network.impairment import Impairment
from chaos.platforms.network.links import DISCARD, CutEffects
from chaos.platforms.ssh.host_network import HostNetwork
from tests.kit.hosts.namespace_hosts import NETWORK, HostInNamespace, two_hosts

LACKING = [result for result in probe(("network-namespaces",), Machine()) if not result.ok]
pytestmark = [pytest.mark.processes, pytest.mark.skipif(bool(LACKING), reason=f"{LACKING and LACKING[0].seen}")]

(NETEM,) = probe(("impairment",), Machine())

OUT, BACK = (0, 1), (1, 0)
PORT = 4444


@pytest.fixture
def hosts(token: str) -> Iterator[list[HostInNamespace]]:
    with two_hosts(token) as made:
        yield made


@pytest.fixture
def node_network(hosts: list[HostInNamespace]) -> HostNetwork:
    made = hosts[0].node_network
    assert made is not None
    return made


def answered(source: HostInNamespace, address: str, wait: float = 30) -> bool:
    """Whether an echo comes back, asked without the remote helper."""
    return ask(source.namespace, [address], count=1, wait=wait).answer_count == 1


def receives(source: HostInNamespace, target: HostInNamespace, own: str = "", wait: float = 30) -> bool:
    """Whether a datagram arrives, sent without the helper and from another address of the source where one is given."""
    with (
        target.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear,
        source.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth,
    ):
        ear.bind((target.address, 0))
        ear.settimeout(wait)
        mouth.bind((own or source.address, 0))
        mouth.sendto(b"x", ear.getsockname())  # whoever sends is told nothing
        try:
            return ear.recv(1) == b"x"
        except TimeoutError:
            return False


def vanishes(source: HostInNamespace, target: HostInNamespace) -> bool:
    """Whether a datagram has not arrived after a time in which it comes a hundred times over."""
    return not receives(source, target, wait=0.3)


def test_a_cut_is_silent_and_goes_one_way(hosts: list[HostInNamespace], node_network: HostNetwork) -> None:
    first, second = hosts
    assert receives(first, second) and receives(second, first)
    node_network.cut("fault", [OUT])
    node_network.cut("fault", [OUT])  # for another rank
    assert vanishes(first, second) and receives(second, first)
    assert node_network.cuts("fault") == {OUT}
    assert [host.rules_left() for host in hosts] == [
        [],
        [f"a rule that cuts what comes from {first.address} for {second.address}"],
    ]


def test_of_two_cuts_of_one_way_each_lasts_until_its_own_end(
    hosts: list[HostInNamespace], node_network: HostNetwork
) -> None:
    node_network.cut("first", [OUT])
    node_network.cut("second", [OUT, BACK])
    assert (node_network.cuts("first"), node_network.cuts("second")) == ({OUT}, {OUT, BACK})
    assert [host.helper.lift("first") for host in hosts] == [0, 1]
    assert vanishes(hosts[0], hosts[1]) and vanishes(hosts[1], hosts[0])
    assert node_network.cuts("first") == set()
    assert [host.helper.lift("second") for host in hosts] == [1, 1]
    assert [host.helper.lift("second") for host in hosts] == [0, 0]
    assert answered(hosts[0], hosts[1].address)


def test_nothing_is_cut_but_what_goes_between_the_data_addresses(
    hosts: list[HostInNamespace], node_network: HostNetwork
) -> None:
    other = f"{NETWORK}.7"
    hosts[0].namespace.do("ip", "address", "add", f"{other}/24", "dev", "eth0")
    node_network.cut("fault", [OUT, BACK])
    assert not answered(hosts[1], hosts[0].address, wait=0.3)
    assert answered(hosts[1], other)
    assert receives(hosts[0], hosts[1], own=other)


def test_it_is_shown_by_what_has_vanished_and_not_by_the_rules_alone(
    hosts: list[HostInNamespace], node_network: HostNetwork
) -> None:
    def parted() -> CutEffects:
        return node_network.cut_effects("fault", [OUT], [0], [1])

    node_network.cut("fault", [OUT])
    looks: list[CutEffects] = []

    def lost() -> bool:
        looks.append(parted())
        return bool(looks[-1].lost)

    wait_for("lost", lost, seconds=30, clock=SYSTEM_CLOCK)
    assert (looks[-1].lost, looks[-1].echoes.answer_count) == ([OUT], 0)
    assert [host.helper.lift() for host in hosts] == [0, 1]
    strange = ("lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent")
    for host, other in (hosts, hosts[::-1]):  # somebody else keeps all from arriving
        host.namespace.do("ip", "neigh", "replace", other.address, *strange)
    node_network.cut("fault", [OUT])
    seen = parted()
    assert (seen.lost, seen.echoes.answer_count) == ([], 0)
    assert node_network.cuts("fault") == {OUT}


@pytest.mark.nightly
def test_a_part_is_lost_and_none_afterwards(hosts: list[HostInNamespace], node_network: HostNetwork) -> None:
    node_network.impair("fault", 1, Impairment(loss=10))
    some = node_network.echo(1, [0], count=300, interval=0.001, wait=10)
    assert 0.02 < 1 - some.answer_count / some.sent < 0.25
    shown = node_network.impaired("fault", 1)
    assert shown is not None
    assert (shown["by"], shown["vanished"]) == ("packet filter", some.sent - some.answer_count)
    assert node_network.impaired("fault", 0) is None and node_network.slowed("fault", 1) is None
    assert hosts[1].helper.lift("fault") == 1
    assert node_network.impaired("fault", 1) is None
    assert node_network.echo(1, [0], count=100, interval=0.001, wait=5).answer_count == 100


def test_a_blocked_port_lets_all_else_pass(hosts: list[HostInNamespace], node_network: HostNetwork) -> None:
    first, second = hosts
    to_port, from_port = (OUT, Ports(target=PORT)), (BACK, Ports(source=PORT))
    node_network.block("fault", [to_port])
    node_network.block("fault", [to_port, from_port])
    assert [host.rules_left() for host in hosts] == [
        [f"a rule that cuts what comes from port {PORT} of {second.address} for {first.address}"],
        [f"a rule that cuts what comes from {first.address} for port {PORT} of {second.address}"],
    ]
    assert node_network.lost("fault", [to_port, from_port]) == [], "nothing has vanished by them yet"
    seen = node_network.blocked("fault", PORT, [to_port, from_port], 1)
    assert (seen.attempts, seen.elsewhere) == ((1, 0), (1, 1))
    assert (seen.lost, seen.passing) == ([OUT, BACK], [OUT, BACK])
    assert node_network.cuts("fault") == {OUT, BACK}
    other = (OUT, Ports(target=PORT + 1))
    node_network.block("fault", [other])  # for another rank, which has a port of its own
    assert node_network.blocked("fault", PORT + 1, [other], 1).lost == [OUT]
    assert node_network.lost("fault", [to_port]) == [OUT]
    assert receives(first, second) and receives(second, first) and answered(first, second.address)
    assert [host.helper.lift("fault") for host in hosts] == [1, 2]
    seen = node_network.blocked("fault", PORT, [to_port, from_port], 1)
    assert (seen.attempts, seen.lost) == ((1, 1), [])


def test_where_a_firewall_swallows_all_that_is_asked_a_blocked_port_is_not_shown(
    hosts: list[HostInNamespace], node_network: HostNetwork
) -> None:
    meant = [(OUT, Ports(target=PORT))]
    node_network.block("firewall", [(OUT, Ports(target=DISCARD))])
    node_network.block("fault", meant)
    seen = node_network.blocked("fault", PORT, meant, 1)
    assert (seen.lost, seen.passing, seen.elsewhere) == ([OUT], [], (1, 0))
    assert not hosts[0].helper.attempt(hosts[0].address, hosts[1].address, DISCARD, 0.3)


LISTENS = """
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("listens", flush=True)
connection = server.accept()[0]
"""
CALLS = """
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)
print("calls", flush=True)
"""
HEARS = """
try:
    connection.recv(1)
except OSError as error:
    print(type(error).__name__, flush=True)
"""


@contextmanager
def connected(hosts: list[HostInNamespace], port: int, run: str) -> Iterator[list[subprocess.Popen[str]]]:
    """Two processes of this run, with a connection from the first host to that port of the second: who has called, and
    who has listened."""
    first, second = hosts
    with ExitStack() as held:
        ends: list[subprocess.Popen[str]] = []
        for host, begins, says in ((second, LISTENS, "listens"), (first, CALLS, "calls")):
            inside = ("nsenter", f"--net=/proc/{host.namespace.holder.pid}/ns/net", sys.executable, "-c")
            argv = (*inside, f"import socket, sys{begins}{HEARS}", second.address, str(port))
            end = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env={**os.environ, RUN_VARIABLE: run})
            held.callback(end.communicate)
            held.callback(end.kill)
            assert end.stdout is not None
            assert end.stdout.readline() == f"{says}\n"
            ends.insert(0, end)
        yield ends


def test_both_ends_of_a_connection_of_the_run_are_told_and_that_of_anybody_else_is_left_alone(
    hosts: list[HostInNamespace], node_network: HostNetwork, token: str
) -> None:
    with connected(hosts, PORT, token) as ends, connected(hosts, PORT + 1, "f" * 32) as strangers:
        (own,) = node_network.established(0, of_run=True)
        assert own.target_port == PORT
        assert {one.target_port for one in node_network.established(0, of_run=False)} == {PORT, PORT + 1}
        (foreign,) = (one for one in node_network.established(0, of_run=False) if one != own)
        with pytest.raises(PlatformError, match="no process of the run has the connection"):
            node_network.reset(0, foreign)
        assert (node_network.reset(0, own), node_network.reset(0, own)) == (True, False)
        entries = [end.stdout.readline() for end in ends if end.stdout is not None]
        assert entries == ["ConnectionAbortedError\n", "ConnectionResetError\n"]
        assert [one.target_port for one in node_network.established(0, of_run=False)] == [PORT + 1]
        assert all(stranger.poll() is None for stranger in strangers)
        assert hosts[1].helper.connections_at(hosts[1].address, PORT + 1, [hosts[0].address]) == 1
        assert hosts[1].helper.connections_at(f"{NETWORK}.7", PORT + 1, [hosts[0].address]) == 0


IN_A_NAMESPACE = """
import socket
from chaos.machine.linux.net.netfilter import DEVICE, Rule, list_rules, remove, turn_over
turn_over("chaos_test", "eth0", socket.if_nametoindex("held"), [Rule({source!r}, {target!r})])
print("laid", flush=True)
input()
(one,) = list_rules("chaos_test", DEVICE)
print(one.came[0], remove("chaos_test"), remove("chaos_test", DEVICE))
"""


def test_what_is_turned_over_to_a_device_comes_back_as_if_it_had_just_come_in(hosts: list[HostInNamespace]) -> None:
    first, second = hosts
    second.namespace.do("ip", "link", "add", "held", "type", "ifb")
    second.namespace.do("ip", "link", "set", "held", "up")
    inside = ("nsenter", f"--net=/proc/{second.namespace.holder.pid}/ns/net", "--")
    program = IN_A_NAMESPACE.format(source=first.address, target=second.address)
    with subprocess.Popen(
        (*inside, sys.executable, "-c", program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as laid:
        assert laid.stdin is not None and laid.stdout is not None
        assert laid.stdout.readline() == "laid\n"
        before = passed(second)
        assert ask(second.namespace, [first.address], count=20, wait=30).answer_count == 20
        assert passed(second) == before + 20
        told, _ = laid.communicate("\n")
        assert told.split() == ["20", "False", "True"], "the rule's count, and of which family it was"
        through = passed(second)
        assert answered(second, first.address)
        assert passed(second) == through


def passed(host: HostInNamespace) -> int:
    """How many packets of IPv4 the device has had."""
    (shown,) = json.loads(host.namespace.do("ip", "-s", "-j", "link", "show", "held"))
    return int(shown["stats64"]["tx"]["packets"])


@pytest.mark.skipif(NETEM.ok and "relay" not in NETEM.seen, reason="the kernel has netem")
def test_a_kernel_that_cannot_let_packets_wait_is_named_before_the_start(
    hosts: list[HostInNamespace], node_network: HostNetwork
) -> None:
    first, second = hosts
    first.helper.check_network(first.address, [second.address], resetting=["connection-reset"])
    message = r"network-delay cannot be made there.*: the kernel has no netem \(sch_netem\)"
    with pytest.raises(PlatformError, match=message):
        first.helper.check_network(first.address, [second.address], holding=["network-delay"])
    with pytest.raises(PlatformError, match="the kernel has no netem"):
        node_network.impair("fault", 1, Impairment(delay=1))
    assert [host.rules_left() for host in hosts] == [[], []]
    assert receives(first, second)


@pytest.mark.parametrize(("release", "does"), [("5.6.19-300.fc32.x86_64", False), ("5.7.0", True), ("6.1.0-56", True)])
def test_a_kernel_is_too_old_by_its_release(release: str, does: bool) -> None:
    assert (too_old(release) is None) == does


WITH_NETEM = pytest.mark.skipif(not NETEM.ok or "relay" in NETEM.seen, reason=f"netem: {NETEM.seen}")


@WITH_NETEM
def test_packets_wait_and_none_is_lost(hosts: list[HostInNamespace], node_network: HostNetwork) -> None:
    first, second = hosts
    second.helper.check_network(second.address, [first.address], holding=["network-delay"])
    assert second.rules_left() == []
    links = second.namespace.do("ip", "-o", "link", "show", "dev", "eth0")
    node_network.impair("fault", 1, Impairment(delay=60, jitter=20))
    node_network.impair("fault", 1, Impairment(delay=60, jitter=20))  # for another rank
    slow = node_network.echo(1, [0], count=20, interval=0.01, wait=5)
    assert slow.answer_count == 20 and 40 <= min(slow.milliseconds) < 80, slow
    assert max(slow.milliseconds) - min(slow.milliseconds) > 2, "more or less"
    shown = node_network.impaired("fault", 1)
    assert shown is not None
    assert (shown["by"], shown["passed"] >= 20, shown["came"] >= shown["passed"]) == ("netem", True, True)
    assert node_network.impaired("fault", 0) is None and node_network.impaired("other", 1) is None
    assert node_network.cuts("fault") == set()
    assert [one.rule for one in second.helper.list_rules("fault")] == [
        Rule(first.address, second.address, delay=60.0, jitter=20.0)
    ]
    assert any("holds up what comes from" in leftover for leftover in second.rules_left())
    assert second.namespace.do("ip", "-o", "link", "show", "dev", "eth0") == links, "its own device is as it was"
    with pytest.raises(PlatformError, match="held up by another fault already"):
        node_network.impair("other", 1, Impairment(delay=5))
    with pytest.raises(PlatformError, match="has laid other rules here"):
        node_network.impair("fault", 1, Impairment(delay=5))
    assert (second.helper.lift("fault"), second.helper.lift("fault")) == (1, 0)
    assert second.rules_left() == []
    assert min(node_network.echo(1, [0], count=4, wait=5).milliseconds) < 40


@WITH_NETEM
def test_only_what_comes_from_the_others_waits(hosts: list[HostInNamespace], node_network: HostNetwork) -> None:
    first, second = hosts
    other = f"{NETWORK}.7"
    first.namespace.do("ip", "address", "add", f"{other}/24", "dev", "eth0")
    node_network.impair("fault", 1, Impairment(delay=300))
    assert min(ask(second.namespace, [first.address], count=2, wait=5).milliseconds) >= 300
    assert min(ask(second.namespace, [other], count=2, wait=5).milliseconds) < 300


@WITH_NETEM
def test_what_a_killed_helper_has_left_waiting_another_one_lifts(
    hosts: list[HostInNamespace], node_network: HostNetwork, token: str
) -> None:
    second = hosts[1]
    node_network.impair("fault", 1, Impairment(delay=100))
    os.kill(second.helper.introduction.pid, signal.SIGKILL)
    wait_for("end", lambda: second.helper.lost, seconds=30, clock=SYSTEM_CLOCK)
    assert min(ask(second.namespace, [hosts[0].address], count=2, wait=5).milliseconds) >= 100
    stranger = second.another_helper("f" * 32)
    assert (stranger.lift(), stranger.devices()) == (0, [])
    stranger.close()
    again = second.another_helper(token)
    (device,) = again.devices()
    assert (again.lift(), again.lift(), again.devices()) == (1, 0, [])
    second.namespace.do("ip", "link", "add", device, "type", "ifb")  # as one that was killed between the two leaves it
    assert (again.devices(), again.lift("fault"), again.devices()) == ([device], 0, [])
    again.close()
    assert min(ask(second.namespace, [hosts[0].address], count=2, wait=5).milliseconds) < 100


def test_no_more_comes_than_the_rate(hosts: list[HostInNamespace], node_network: HostNetwork) -> None:
    node_network.slow("fault", 1, 256)
    with hosts[0].namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
        for _ in range(400):
            mouth.sendto(b"x" * 1000, (hosts[1].address, 9))

    def limited() -> dict[str, int] | None:
        now = node_network.slowed("fault", 1)
        return now if now and now["overlimits"] else None

    shown = wait_for("packets beyond the rate", limited, seconds=30, clock=SYSTEM_CLOCK)
    assert shown["kbit"] == 256
    assert 32_000 < shown["bytes"] < 400_000
    assert node_network.cuts("fault") == set()


def test_with_its_helper_a_rule_is_gone_and_after_a_killed_one_another_lifts_it(
    hosts: list[HostInNamespace], node_network: HostNetwork, token: str
) -> None:
    first, second = hosts
    node_network.cut("fault", [OUT, BACK])
    first.helper.close()
    assert receives(second, first)
    os.kill(second.helper.introduction.pid, signal.SIGKILL)
    wait_for("end", lambda: second.helper.lost, seconds=30, clock=SYSTEM_CLOCK)
    assert vanishes(first, second)
    stranger = second.another_helper("f" * 32)
    assert (stranger.list_rules(), stranger.lift()) == ([], 0)
    stranger.close()
    again = second.another_helper(token)
    assert [counter.rule for counter in again.list_rules("fault")] == [Rule(first.address, second.address)]
    assert vanishes(first, second), "another helper that only looks changes nothing"
    assert (again.lift("fault"), again.lift("fault")) == (1, 0)
    again.close()
    assert receives(first, second)


def test_an_address_that_the_harness_comes_from_is_never_cut(token: str) -> None:
    with two_hosts(token, harness=f"{NETWORK}.2") as hosts:
        message = f"reaches this host from {NETWORK}.2, which is a data address of the run"
        with pytest.raises(PlatformError, match=message):
            hosts[0].helper.check_network(hosts[0].address, [hosts[1].address])
        assert hosts[0].node_network is not None
        with pytest.raises(PlatformError, match=message):
            hosts[0].node_network.cut("fault", [BACK])
        assert hosts[0].helper.list_rules() == []


def test_a_host_without_that_address_is_refused(hosts: list[HostInNamespace]) -> None:
    hosts[0].helper.check_network(hosts[0].address, [hosts[1].address])
    with pytest.raises(PlatformError, match=f"{NETWORK}.99 is no address of this host"):
        hosts[0].helper.check_network(f"{NETWORK}.99", [hosts[1].address])


def test_who_may_not_lay_rules_is_told_so_before(token: str) -> None:
    drop = ("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin")
    with two_hosts(token, before=drop) as hosts, pytest.raises(PlatformError, match="must be root there"):
        hosts[0].helper.check_network(hosts[0].address, [hosts[1].address])
