"""What goes between hosts is cut by the hosts themselves: silently, only between them, and each fault by itself."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator

import pytest

from chaos.history.clock import SYSTEM_CLOCK
from chaos.platforms.base import PlatformError
from chaos.platforms.hand.netfilter import Rule
from chaos.platforms.network.between import Between, Parted
from chaos.platforms.network.echo import ask
from chaos.platforms.network.impairment import Impairment
from chaos.platforms.ssh.between import BetweenHosts
from chaos.run.machine import Machine, probe
from chaos.run.wait import wait_for
from tests.namespace_hosts import NETWORK, HostInNamespace, two_hosts

LACKING = [one for one in probe(("network-namespaces",), Machine()) if not one.ok]
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"{LACKING and LACKING[0].seen}")

OUT, BACK = (0, 1), (1, 0)


@pytest.fixture
def hosts(token: str) -> Iterator[list[HostInNamespace]]:
    with two_hosts(token) as made:
        yield made


@pytest.fixture
def between(hosts: list[HostInNamespace]) -> BetweenHosts:
    made = hosts[0].between
    assert isinstance(made, Between)
    return made


def answered(source: HostInNamespace, address: str) -> bool:
    """Whether an echo comes back, asked without the hand."""
    return ask(source.namespace, [address], count=1, wait=0.3).answered == 1


def receives(source: HostInNamespace, target: HostInNamespace, own: str = "") -> bool:
    """Whether a datagram arrives, sent without the hand and from another address of the source where one is given."""
    with (
        target.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear,
        source.namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth,
    ):
        ear.bind((target.address, 0))
        ear.settimeout(0.3)
        mouth.bind((own or source.address, 0))
        mouth.sendto(b"x", ear.getsockname())  # whoever sends is told nothing
        try:
            return ear.recv(1) == b"x"
        except TimeoutError:
            return False


def test_a_cut_is_silent_and_goes_one_way(hosts: list[HostInNamespace], between: BetweenHosts) -> None:
    first, second = hosts
    assert receives(first, second) and receives(second, first)
    between.cut("fault", [OUT])
    between.cut("fault", [OUT])  # for another rank
    assert (receives(first, second), receives(second, first)) == (False, True)
    assert between.cuts("fault") == {OUT}
    assert [host.rules_left() for host in hosts] == [
        [],
        [f"a rule that cuts what comes from {first.address} for {second.address}"],
    ]


def test_of_two_cuts_of_one_way_each_lasts_until_its_own_end(
    hosts: list[HostInNamespace], between: BetweenHosts
) -> None:
    between.cut("first", [OUT])
    between.cut("second", [OUT, BACK])
    assert (between.cuts("first"), between.cuts("second")) == ({OUT}, {OUT, BACK})
    assert [host.hand.lift("first") for host in hosts] == [0, 1]
    assert (receives(hosts[0], hosts[1]), receives(hosts[1], hosts[0])) == (False, False)
    assert between.cuts("first") == set()
    assert [host.hand.lift("second") for host in hosts] == [1, 1]
    assert [host.hand.lift("second") for host in hosts] == [0, 0]
    assert answered(hosts[0], hosts[1].address)


def test_nothing_is_cut_but_what_goes_between_the_data_addresses(
    hosts: list[HostInNamespace], between: BetweenHosts
) -> None:
    other = f"{NETWORK}.7"
    hosts[0].namespace.do("ip", "address", "add", f"{other}/24", "dev", "eth0")
    between.cut("fault", [OUT, BACK])
    assert not answered(hosts[1], hosts[0].address)
    assert answered(hosts[1], other)
    assert receives(hosts[0], hosts[1], own=other)


def test_it_is_shown_by_what_has_vanished_and_not_by_the_rules_alone(
    hosts: list[HostInNamespace], between: BetweenHosts
) -> None:
    def parted() -> Parted:
        return between.parted("fault", [OUT], [0], [1])

    between.cut("fault", [OUT])
    looks: list[Parted] = []

    def lost() -> bool:
        looks.append(parted())
        return bool(looks[-1].lost)

    wait_for("lost", lost, seconds=30, clock=SYSTEM_CLOCK)
    assert (looks[-1].lost, looks[-1].echoes.answered) == ([OUT], 0)
    assert [host.hand.lift() for host in hosts] == [0, 1]
    strange = ("lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent")
    for host, other in (hosts, hosts[::-1]):  # somebody else keeps all from arriving
        host.namespace.do("ip", "neigh", "replace", other.address, *strange)
    between.cut("fault", [OUT])
    seen = parted()
    assert (seen.lost, seen.echoes.answered) == ([], 0)
    assert between.cuts("fault") == {OUT}


def test_a_part_is_lost_and_none_afterwards(hosts: list[HostInNamespace], between: BetweenHosts) -> None:
    between.impair("fault", 1, Impairment(loss=10))
    some = between.echo(1, [0], count=300, interval=0.001, wait=1)
    assert 0.02 < 1 - some.answered / some.sent < 0.25
    shown = between.impaired("fault", 1)
    assert shown is not None
    assert (shown["by"], shown["vanished"]) == ("packet filter", some.sent - some.answered)
    assert between.impaired("fault", 0) is None and between.slowed("fault", 1) is None
    assert hosts[1].hand.lift("fault") == 1
    assert between.impaired("fault", 1) is None
    assert between.echo(1, [0], count=100, interval=0.001, wait=5).answered == 100


def test_what_would_have_to_wait_is_refused(between: BetweenHosts) -> None:
    with pytest.raises(PlatformError, match="cannot hold them up"):
        between.impair("fault", 1, Impairment(delay=1))


def test_no_more_comes_than_the_rate(hosts: list[HostInNamespace], between: BetweenHosts) -> None:
    between.slow("fault", 1, 256)
    with hosts[0].namespace.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
        for _ in range(400):
            mouth.sendto(b"x" * 1000, (hosts[1].address, 9))
    shown = between.slowed("fault", 1)
    assert shown is not None
    assert shown["kbit"] == 256
    assert 32_000 < shown["bytes"] < 400_000 and shown["overlimits"] > 0
    assert between.cuts("fault") == set()


def test_with_its_hand_a_rule_is_gone_and_after_a_killed_one_another_lifts_it(
    hosts: list[HostInNamespace], between: BetweenHosts, token: str
) -> None:
    first, second = hosts
    between.cut("fault", [OUT, BACK])
    first.hand.close()
    assert receives(second, first)
    os.kill(second.hand.introduction.pid, signal.SIGKILL)
    wait_for("end", lambda: second.hand.lost, seconds=30, clock=SYSTEM_CLOCK)
    assert not receives(first, second)
    stranger = second.another_hand("f" * 32)
    assert (stranger.laid(), stranger.lift()) == ([], 0)
    stranger.close()
    again = second.another_hand(token)
    assert [one.rule for one in again.laid("fault")] == [Rule(first.address, second.address)]
    assert not receives(first, second), "another hand that only looks changes nothing"
    assert (again.lift("fault"), again.lift("fault")) == (1, 0)
    again.close()
    assert receives(first, second)


def test_an_address_that_the_harness_comes_from_is_never_cut(token: str) -> None:
    with two_hosts(token, harness=f"{NETWORK}.2") as hosts:
        told = f"reaches this host from {NETWORK}.2, which is a data address of the run"
        with pytest.raises(PlatformError, match=told):
            hosts[0].hand.check_network(hosts[0].address, [hosts[1].address])
        assert hosts[0].between is not None
        with pytest.raises(PlatformError, match=told):
            hosts[0].between.cut("fault", [BACK])
        assert hosts[0].hand.laid() == []


def test_a_host_without_that_address_is_refused(hosts: list[HostInNamespace]) -> None:
    hosts[0].hand.check_network(hosts[0].address, [hosts[1].address])
    with pytest.raises(PlatformError, match=f"{NETWORK}.99 is no address of this host"):
        hosts[0].hand.check_network(f"{NETWORK}.99", [hosts[1].address])


def test_who_may_not_lay_rules_is_told_so_before(token: str) -> None:
    drop = ("setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin")
    with two_hosts(token, before=drop) as hosts, pytest.raises(PlatformError, match="must be root there"):
        hosts[0].hand.check_network(hosts[0].address, [hosts[1].address])
