"""``chaos inject connection-reset``: the rank's own connections of one port, and no other of it or of anybody else."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.machine.linux.net.connections import refusal
from chaos.machine.linux.process import identify, state
from tests.kit.jobs.running_jobs import OwnJob, own_job
from tests.unit.cli.kit import Ended

Call = Callable[..., Ended]

WHY = refusal()
resets = pytest.mark.skipif(WHY is not None, reason=f"this machine's kernel resets no connections: {WHY}")

RANK = """
import socket, sys
ends = [socket.create_connection(("127.0.0.1", int(port))) for port in sys.argv[1:]]
for end in ends:
    try:
        end.recv(1)
    except OSError as error:
        print(f"errno {error.errno}", flush=True)
"""
"""A rank that connects to each port, and says in turn how each connection ends."""


class Peers:
    """Who listens on two ports, and the rank's connections as seen from there."""

    def __init__(self, opened: ExitStack) -> None:
        self.listening = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        self.ports = [int(listener.getsockname()[1]) for listener in self.listening]
        self.accepted: list[socket.socket] = []


@pytest.fixture
def peers() -> Iterator[Peers]:
    with ExitStack() as opened:
        yield Peers(opened)


@pytest.fixture
def job(tmp_path: Path, peers: Peers) -> Iterator[OwnJob]:
    """Rank 1 has a connection of each port; the first is what its environment calls the controller's."""
    with own_job(tmp_path / "job", ranks=1) as job, ExitStack() as opened:
        more = {"MS_TFT_PORT": str(peers.ports[0]), "MASTER_PORT": str(peers.ports[0]), "PYTHONPATH": ""}
        job.start(1, sys.executable, "-c", RANK, *map(str, peers.ports), **more)
        peers.accepted = [opened.enter_context(listener.accept()[0]) for listener in peers.listening]
        yield job


@resets
@pytest.mark.parametrize("word", [None, "controller", "master"])
def test_the_connection_of_the_port_is_reset_at_both_ends_and_the_rank_goes_on(
    chaos: Call, job: OwnJob, peers: Peers, reports: Path, word: str | None
) -> None:
    port = word or peers.ports[0]
    identity = identify(job.ranks[1].pid)
    ended = chaos(
        "inject", "connection-reset", "--rank", "1", "--job", str(job.logs), "--set", f"port={port}", "--json"
    )
    assert ended.code == 0, ended.err
    result = json.loads(ended.out)
    (hit,) = result["hits"]
    (one,) = hit["evidence"]["reset"]
    assert (result["outcome"], result["undone"]) == ("landed", None)
    assert (one["target_port"], one["confirmed"], hit["evidence"]["left"]) == (peers.ports[0], True, 0)
    assert hit["evidence"]["said_by"] == "the kernel (sock_diag)"
    with pytest.raises(ConnectionResetError):
        peers.accepted[0].recv(1)
    log = job.logs / "worker_1.log"
    wait_for("the rank's word", lambda: log.read_text().startswith("errno 103"), seconds=60)  # ECONNABORTED
    assert state(identity) == "alive"
    peers.accepted[1].sendall(b"x")  # the other one is as it was: the rank gets this, and ends without an error
    assert job.ranks[1].wait(60) == 0
    assert log.read_text().count("errno") == 1


@resets
def test_a_dry_run_shows_the_connection_and_resets_nothing(
    chaos: Call, job: OwnJob, peers: Peers, reports: Path
) -> None:
    command = ("inject", "connection-reset", "--rank", "1", "--job", str(job.logs), "--set", f"port={peers.ports[1]}")
    ended = chaos(*command, "--dry-run", "--json")
    own = peers.accepted[1].getpeername()[1]
    assert json.loads(ended.out)["targets"] == [
        {"rank": 1, "connection": f"127.0.0.1:{own} to 127.0.0.1:{peers.ports[1]}"}
    ]
    assert f"127.0.0.1:{own}" in chaos(*command, "--dry-run").out
    peers.accepted[1].setblocking(False)
    with pytest.raises(BlockingIOError):
        peers.accepted[1].recv(1)
    assert not reports.exists()


@resets
@pytest.mark.parametrize(
    ("rank", "port", "why"),
    [
        ("1", "1", "has no established TCP connection (IPv4) of port 1; it has 127.0.0.1:"),
        ("0", "scheduler", "of port 8118; it has none at all"),
        ("0", "controller", "has no MS_TFT_PORT"),
    ],
)
def test_without_such_a_connection_nothing_is_done(
    chaos: Call, job: OwnJob, reports: Path, rank: str, port: str, why: str
) -> None:
    ended = chaos("inject", "connection-reset", "--rank", rank, "--job", str(job.logs), "--set", f"port={port}")
    assert (ended.code, why in " ".join(ended.err.split())) == (64, True), ended.err
    assert not reports.exists()


def test_a_kernel_that_resets_no_connections_is_told_before_anything_is_touched(
    chaos: Call, job: OwnJob, peers: Peers, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaos.doctor.network.refusal", lambda: "Operation not supported")
    command = ("inject", "connection-reset", "--rank", "1", "--job", str(job.logs), "--set", f"port={peers.ports[0]}")
    ended = chaos(*command)
    assert ended.code == 64
    assert "Operation not supported" in ended.err and "CONFIG_INET_DIAG_DESTROY" in ended.err
    assert not reports.exists()
