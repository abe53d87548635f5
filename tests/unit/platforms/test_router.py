"""The network between the nodes of a run: faults in it are the kernel's, and this host's own is never touched."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.wait import wait_for
from chaos.doctor import Machine, probe
from chaos.faults.network.undo import mend_network
from chaos.heal.undo import UNDO_ACTIONS, CannotUndo, UndoContext
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import PlatformError
from chaos.machine.linux.net.echo import ask
from chaos.machine.linux.net.namespace import Namespace
from chaos.machine.linux.net.port_probe import answering_ends
from chaos.machine.linux.net.ports import Ports
from chaos.machine.linux.process import identify
from chaos.platforms.network.addressing import address_of, handle_of, preference_of
from chaos.platforms.network.impairment import Impairment
from chaos.platforms.network.router import HOLDS_FOR, RECORD, Router
from chaos.store.directory import RunDirectory, create_run

LACKING = [result for result in probe(("network-namespaces", "tbf", "impairment"), Machine()) if not result.ok]
pytestmark = [pytest.mark.processes, pytest.mark.skipif(bool(LACKING), reason=f"{LACKING and LACKING[0].seen}")]

CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3]))"
LISTEN = (
    "import socket; s = socket.create_server(('', 0)); print(s.getsockname()[1], flush=True); s.accept(); s.accept()"
)


def holders(count: int, run_dir: Path) -> list[subprocess.Popen[bytes]]:
    """Processes that each hold a network namespace of their own for a run, until their input ends."""
    environment = {**os.environ, HOLDS_FOR: str(run_dir.resolve())}
    argv = ("unshare", "--net", "--", "cat")
    made = [subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment) for _ in range(count)]
    own = Path("/proc/self/ns/net").readlink()
    for process in made:
        wait_for(
            "namespace",
            lambda one=process: Path(f"/proc/{one.pid}/ns/net").readlink() != own,  # type: ignore[misc]
            seconds=30,
            clock=SYSTEM_CLOCK,
        )
    return made


@pytest.fixture
def held(run: RunDirectory) -> Iterator[list[Namespace]]:
    """A router's namespace and those of two nodes."""
    made = holders(3, run.path)
    try:
        yield [Namespace(identify(process.pid)) for process in made]
    finally:
        for process in made:
            process.kill()
            process.communicate()


@pytest.fixture
def router(held: list[Namespace]) -> Router:
    made = Router(held[0])
    made.begin()
    assert [made.join(node, namespace) for node, namespace in enumerate(held[1:])] == [address_of(0), address_of(1)]
    return made


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunDirectory]:
    made = create_run(tmp_path / "reports", "network")
    yield made
    made.lock.release()


def reaches(source: Namespace, port: int, seconds: float) -> bool:
    """Whether somebody in that namespace gets a connection to node 1."""
    return source("python3", "-c", CONNECT, address_of(1), str(port), str(seconds)).code == 0


@contextlib.contextmanager
def listening(namespace: Namespace) -> Iterator[int]:
    """Somebody who takes connections in that namespace, on the port that is given; ended whatever the test comes to."""
    inside = ("nsenter", f"--net=/proc/{namespace.holder.pid}/ns/net", "python3", "-c", LISTEN)
    listener = subprocess.Popen(inside, stdout=subprocess.PIPE, text=True)
    try:
        assert listener.stdout is not None
        yield int(listener.stdout.readline())
    finally:
        listener.kill()
        listener.communicate()


def test_a_cut_lets_packets_vanish_one_way_until_it_is_mended(router: Router, held: list[Namespace]) -> None:
    with listening(held[2]) as port:
        assert reaches(held[1], port, 60)
        router.cut("first", [(0, 1)])
        router.cut("first", [(0, 1)])  # for another rank
        assert (router.is_cut(0, 1), router.is_cut(1, 0)) == (True, False)
        began = time.monotonic()
        assert not reaches(held[1], port, 0.5)
        assert time.monotonic() - began > 0.5, "nobody is told: it is silence, no refusal"
        assert (router.mend("first"), router.mend("first")) == (1, 0)
        assert not router.is_cut(0, 1)
        assert reaches(held[1], port, 60)


def test_of_two_cuts_of_one_way_each_lasts_until_its_own_end(router: Router) -> None:
    router.cut("first", [(0, 1)])
    router.cut("second", [(0, 1)])
    router.cut("second", [(1, 0)])
    assert (router.cuts("first"), router.cuts("second")) == ({(0, 1)}, {(0, 1), (1, 0)})
    assert router.mend("first") == 1
    assert (router.is_cut(0, 1), router.is_cut(1, 0)) == (True, True)
    assert router.cuts("first") == set()
    assert router.mend("second") == 2
    assert (router.is_cut(0, 1), router.is_cut(1, 0)) == (False, False)


def test_a_cut_of_one_port_lets_all_others_answer(router: Router, held: list[Namespace]) -> None:
    def those_that_answer(*ports: int) -> set[int]:
        return {port for _, port in answering_ends(held[1], [(address_of(1), port) for port in ports], wait=0.5)}

    to_port, from_port = Ports(target=7), Ports(source=7)
    with listening(held[2]) as port:
        assert those_that_answer(7, 9, port) == {7, 9, port}, "two refuse, one takes the connection"
        router.cut("first", [(0, 1)], to_port)
        assert those_that_answer(7, 9, port) == {9, port}
        assert (router.is_cut(0, 1, to_port), router.is_cut(0, 1, from_port), router.is_cut(0, 1)) == (
            True,
            False,
            False,
        )
        assert not router.is_cut(1, 0, to_port)
        router.cut("second", [(1, 0)], from_port)
        assert (router.cuts("first"), router.cuts("first", from_port)) == ({(0, 1)}, set())
        assert router.left(1) == ["a rule that cuts node 1 from node 0 where it sends from port 7"]
        assert (router.mend("first"), router.is_cut(0, 1, to_port)) == (1, False)
        assert those_that_answer(7, 9) == {9}, "the answer is lost"
        assert router.mend("second") == 1
        assert those_that_answer(7, 9) == {7, 9}


def test_a_limit_is_freed_by_its_own_fault_only(router: Router) -> None:
    router.limit("first", 1, "tbf", "rate", "64kbit", "burst", "16kb", "latency", "1s")
    with pytest.raises(PlatformError, match="limited by another fault already"):
        router.limit("second", 1, "tbf", "rate", "1mbit", "burst", "16kb", "latency", "1s")
    assert router.limited("second", 1) is None
    assert not router.free("second", 1)
    assert router.limited("first", 1) is not None
    assert router.free("first", 1)


def test_a_rate_is_held_and_counted_by_the_kernel(router: Router) -> None:
    assert router.limited("first", 1) is None
    router.limit("first", 1, "tbf", "rate", "64kbit", "burst", "16kb", "latency", "1s")
    shown = router.limited("first", 1)
    assert shown is not None
    assert (shown["kind"], shown["options"]["rate"]) == ("tbf", 8000)  # type: ignore[index]
    assert (router.free("first", 1), router.free("first", 1)) == (True, False)
    assert router.limited("first", 1) is None


def test_packets_are_held_up_until_it_is_freed(router: Router, held: list[Namespace]) -> None:
    router.impair("first", 1, Impairment(delay=40, jitter=10))
    try:
        slow = ask(held[2], [address_of(0)], count=4, wait=20)
        assert slow.answer_count == 4 and min(slow.milliseconds) >= 30
        shown = router.impaired("first", 1)
        assert shown is not None
        assert shown["by"] in ("netem", "relay") and shown["passed"] >= 4  # type: ignore[operator]
        assert router.impaired("second", 1) is None
        assert not router.free("second", 1)
        assert router.impaired("first", 1) is not None
        assert (router.free("first", 1), router.free("first", 1)) == (True, False)
        assert router.impaired("first", 1) is None
        assert min(ask(held[2], [address_of(0)], count=4, wait=20).milliseconds) < 30
    finally:
        router.relays.close()


def test_some_packets_are_lost_and_none_afterwards(router: Router, held: list[Namespace]) -> None:
    router.impair("first", 1, Impairment(loss=10))
    try:
        some = ask(held[2], [address_of(0)], count=300, interval=0.001, wait=5)
        assert 0.02 < 1 - some.answer_count / some.sent < 0.25
        assert router.free("first", 1)
        assert ask(held[2], [address_of(0)], count=100, interval=0.001, wait=20).answer_count == 100
    finally:
        router.relays.close()


def test_undo_finds_the_router_by_the_runs_record_and_only_that_of_its_run(router: Router, run: RunDirectory) -> None:
    router.record(run.path)
    router.cut("first", [(0, 1)])
    router.cut("other", [(1, 0)])
    router.limit("first", 1, "tbf", "rate", "64kbit", "burst", "16kb", "latency", "1s")
    arguments = {"run_dir": str(run.path.resolve()), "fault": "first", "nodes": [1]}
    step = UndoStep("first-network", "first", "mend-network", arguments)
    with pytest.raises(CannotUndo, match="is no directory of this run"):
        mend_network(step, UndoContext("another", SYSTEM_CLOCK))
    assert router.is_cut(0, 1)
    context = UndoContext(run.token, SYSTEM_CLOCK)
    assert UNDO_ACTIONS[step.action](step, context) == "removed 1 rules and 1 limits from the run's network"
    assert (router.is_cut(0, 1), router.is_cut(1, 0)) == (False, True)
    assert mend_network(step, context) == "removed 0 rules and 0 limits from the run's network"


def test_with_its_holder_the_network_is_gone(router: Router, held: list[Namespace], run: RunDirectory) -> None:
    router.record(run.path)
    os.kill(held[0].holder.pid, 9)
    wait_for("end", lambda: not router.is_there, seconds=30, clock=SYSTEM_CLOCK)
    step = UndoStep("f", "f", "mend-network", {"run_dir": str(run.path.resolve()), "fault": "f", "nodes": []})
    assert (
        mend_network(step, UndoContext(run.token, SYSTEM_CLOCK)) == "the network of the run has gone with its harness"
    )
    with pytest.raises(PlatformError, match="has gone"):
        router.cut("first", [(0, 1)])


def test_this_hosts_own_network_is_never_touched(run: RunDirectory) -> None:
    own = Namespace(identify(os.getpid()))
    with pytest.raises(PlatformError, match="this host's own network, which is never touched"):
        own("ip", "link")
    Router(own).record(run.path)
    step = UndoStep("f", "f", "mend-network", {"run_dir": str(run.path.resolve()), "fault": "f", "nodes": []})
    with pytest.raises(CannotUndo, match="does not hold the network of"):
        mend_network(step, UndoContext(run.token, SYSTEM_CLOCK))
    assert (run.path / RECORD).is_file()


def test_faults_have_preferences_of_their_own() -> None:
    assert preference_of("first") != preference_of("second")
    assert handle_of("first") != handle_of("second")
    assert len({handle_of(str(number)) for number in range(100)}) > 95
    assert all(1000 <= preference_of(str(number)) < 31000 for number in range(100))
