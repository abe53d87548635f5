"""What is told of a host that goes, comes back, or is hard to reach: facts only, and each as soon as it is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chaos.base.clock import Clock
from chaos.history.ledger import Ledger
from chaos.machine.job.protocol import PlatformError
from chaos.machine.remote.client import Visitors
from chaos.platforms.nodes import Site
from chaos.platforms.ssh import host_helper, reach
from chaos.platforms.ssh.connection import HostUnreachable, LoginRefused
from chaos.platforms.ssh.inventory import Host
from chaos.platforms.ssh.node import SshNode
from chaos.platforms.ssh.platform import _refuse_one_machine
from chaos.scenario.models.ssh import Ssh

HOST = Host(
    name="first", address="192.0.2.1", port=22, user="u", key=None, known_hosts="", fingerprint=None,
    data_address="192.0.2.1", python="/usr/bin/python3", directory="/var/tmp", reboot=("reboot", "now"), cores=None,
    devices=None, connect=1.0, keepalive=1.0, lost=1.0, vanished=3.0, boot=30.0,
)  # fmt: skip
REFUSED = LoginRefused("refuses user u")
DOWN = HostUnreachable("does not answer")
BROKEN = (-1, "")


Answer = Exception | Mapping[str, Any]


@dataclass
class Answers:
    """What each connection to the host comes to: an error, or what its commands end with. The last one stays."""

    clock: Clock
    each: list[Answer] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    host: Host = HOST

    def connect(self, host: Host) -> Answers:
        now = self.each[0]
        if isinstance(now, Exception):
            self._next()
            raise now
        return self

    def run(self, command: str) -> Any:
        now = self.each[0]
        assert isinstance(now, Mapping)
        self.commands.append(command)
        answer = now["boot" if "boot_id" in command else command]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _next(self) -> None:
        if len(self.each) > 1:
            self.each.pop(0)

    def close(self) -> None:
        self._next()

    __enter__ = lambda self: self  # noqa: E731
    __exit__ = lambda self, *_: self.close()  # noqa: E731


class RemoteHelper:
    """A remote helper of a host in boot ``a``."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.lost: str | None = None
        self.introduction = SimpleNamespace(boot="a")

    def catch_up(self) -> None: ...


@dataclass
class Case:
    node: SshNode
    answers: Answers
    told: list[tuple[str, dict[str, Any]]]
    clock: Clock

    def lose(self, *answers: Answer) -> None:
        """The connection of the remote helper is lost, and the next ones come to this."""
        self.node.helper.lost = "its stream has ended"
        self.answers.each = list(answers)


@pytest.fixture
def case(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    answers, told = Answers(clock, [{}]), list[tuple[str, dict[str, Any]]]()
    monkeypatch.setattr(reach, "Connection", answers.connect)
    monkeypatch.setattr(host_helper, "HostHelper", RemoteHelper)
    site = Site(
        "token", 1, tmp_path, tmp_path, (), (tmp_path,), Ssh(inventory="hosts.yaml"), Ledger(tmp_path / "undo.jsonl"),
        Path("/usr/bin/python3"), cast("Visitors", None), clock,
        record_event=lambda event, **fields: told.append((event, fields)),
    )  # fmt: skip
    node = SshNode(0, HOST, site, {})
    node.ready()
    yield Case(node, answers, told, clock)


def boot(name: str) -> dict[str, tuple[int, str]]:
    return {"boot": (0, f"{name}\n")}


def test_a_connection_that_breaks_under_the_question_is_asked_again(case: Case) -> None:
    case.lose({"boot": BROKEN}, {"boot": DOWN}, DOWN, boot("a"))
    assert case.node.state() == "running"
    assert [event for event, _ in case.told] == ["host.lost"]


def test_a_host_counts_as_vanished_only_when_its_time_is_over(case: Case) -> None:
    case.lose({"boot": BROKEN})
    before = case.clock.mono()
    assert case.node.state() == "gone"
    assert case.clock.mono() - before >= HOST.vanished * 1e9
    assert [event for event, _ in case.told] == ["host.vanished"]


def test_a_host_that_does_not_tell_its_boot_is_an_error_and_no_fact(case: Case) -> None:
    case.lose({"boot": (1, "cat: no such file")})
    with pytest.raises(PlatformError, match="no such file"):
        case.node.state()
    assert case.told == []
    assert case.node.known == "running"


def test_what_a_login_prints_is_no_part_of_the_boot(case: Case) -> None:
    case.lose({"boot": (0, "Welcome!\na\n")})
    assert case.node.state() == "running"


def test_a_login_refused_while_the_host_comes_up_is_waited_for(case: Case) -> None:
    case.lose(REFUSED, REFUSED, boot("b"))
    assert case.node.state() == "gone"
    assert [event for event, _ in case.told] == ["host.rebooted"]
    case.answers.each = [REFUSED, DOWN, REFUSED, boot("b")]
    case.node.ready()
    assert case.node.known == "running"


def test_a_login_that_was_never_let_in_is_refused_at_once(case: Case) -> None:
    case.answers.each = [REFUSED]
    with pytest.raises(LoginRefused):
        reach.Reach(HOST, case.clock).connected(30.0)


def test_a_host_that_goes_refusing_has_no_boot_yet(case: Case) -> None:
    case.answers.each = [REFUSED]
    assert case.node.boot() is None


def test_a_reboot_is_ordered_in_the_ranks_own_boot_only(case: Case) -> None:
    case.answers.each = [{**boot("b"), "reboot now": (0, "")}]
    with pytest.raises(PlatformError, match="is in boot b"):
        case.node.reboot("a")
    assert case.told == []
    assert not any("reboot now" in command for command in case.answers.commands)


@pytest.mark.parametrize("end", [(0, ""), (-1, ""), DOWN])
def test_a_node_that_was_told_to_reboot_has_gone_only_when_it_has(case: Case, end: Any) -> None:
    case.answers.each = [{**boot("a"), "reboot now": end}, boot("a"), DOWN, boot("b")]
    case.node.reboot("a")
    assert case.told == [("host.reboot", {"node": 0, "host": "first", "command": "reboot now"})]
    assert (case.node.boot(), case.node.known) == ("a", "running")
    assert (case.node.boot(), case.node.known) == (None, "running")
    assert (case.node.boot(), case.node.known) == ("b", "gone")


def test_a_reboot_that_is_refused_changes_nothing(case: Case) -> None:
    case.answers.each = [{**boot("a"), "reboot now": (1, "not root")}]
    with pytest.raises(PlatformError, match="ended with 1: not root"):
        case.node.reboot("a")
    assert case.node.known == "running"


def test_a_host_that_shuts_down_by_order_is_waited_for(case: Case) -> None:
    case.answers.each = [{**boot("a"), "reboot now": (0, "")}]
    case.node.reboot("a")
    case.lose(boot("a"), boot("a"), boot("b"))
    assert case.node.state() == "gone"
    case.answers.each = [boot("b")]
    case.node.ready()


def test_one_that_stays_in_its_boot_has_not_gone(case: Case) -> None:
    case.answers.each = [{**boot("a"), "reboot now": (0, "")}]
    case.node.reboot("a")
    case.lose(boot("a"))
    assert case.node.state() == "running"
    assert [event for event, _ in case.told] == ["host.reboot", "host.lost"]


def _node(name: str, boot: str, network: str) -> SshNode:
    helper = SimpleNamespace(introduction=SimpleNamespace(boot=boot, network=network, host="machine"))
    return cast(SshNode, SimpleNamespace(host=replace(HOST, name=name), helper=helper))


def test_two_hosts_that_are_one_machine_are_refused() -> None:
    with pytest.raises(PlatformError, match=r"host first .* and host second .* are one machine"):
        _refuse_one_machine([_node("first", "b", "net:[1]"), _node("second", "b", "net:[1]")])


@pytest.mark.parametrize(
    ("boot", "network"), [("c", "net:[1]"), ("b", "net:[2]"), ("b", "")], ids=["machine", "container", "untold"]
)
def test_hosts_of_their_own_are_taken(boot: str, network: str) -> None:
    _refuse_one_machine([_node("first", "b", "net:[1]"), _node("second", boot, network)])
