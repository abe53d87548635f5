"""Fixtures of the tests of this machine and the jobs on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.machine.hand.bundle import bundle
from chaos.machine.hand.client import HandClient, Visitors
from chaos.machine.hand.transport import SubprocessTransport
from chaos.machine.job.processes import FoundProcess, find_run_processes
from chaos.machine.job.protocol import LaunchSpec
from chaos.machine.linux.children import subreaper
from tests.unit.machine.fake_proc import FakeProc

Found = Callable[[int], list[FoundProcess]]


@pytest.fixture
def found(token: str) -> Found:
    """Wait until the run has exactly so many processes, all past their exec, and return them."""

    def found(count: int) -> list[FoundProcess]:
        seen: list[FoundProcess] = []

        def settled() -> list[FoundProcess] | None:
            seen[:] = find_run_processes(token)
            return seen if len(seen) == count else None

        return wait_for(f"{count} processes of the run", settled, seconds=60, detail=lambda: f"seen: {seen}")

    return found


@pytest.fixture
def adopting() -> Iterator[None]:
    with subreaper():
        yield


Spec = Callable[..., LaunchSpec]


@pytest.fixture
def spec(token: str, tmp_path: Path) -> Spec:
    """A launch of ``sh -c script``."""

    def spec(script: str, *, attempt: str = "train", cores: tuple[int, ...] | None = None) -> LaunchSpec:
        return LaunchSpec(
            run=token,
            attempt=attempt,
            argv=("sh", "-c", script),
            environment={"PATH": "/usr/bin:/bin"},
            cwd=tmp_path,
            log=tmp_path / f"{attempt}.log",
            cores=cores,
        )

    return spec


StartHand = Callable[..., HandClient]


@pytest.fixture
def start_hand(token: str, tmp_path: Path) -> Iterator[StartHand]:
    """Start a hand as a node's platform does: from the bundle, with nothing of this process's modules."""
    path = tmp_path / "hand.pyz"
    path.write_bytes(bundle())
    hands: list[HandClient] = []

    def start(node: int = 0, visitors: Visitors | None = None, own: dict[str, str] | None = None) -> HandClient:
        transport = SubprocessTransport((sys.executable, "-I", str(path)), own or {"PATH": os.environ["PATH"]})
        hands.append(HandClient(transport, node, token, visitors))
        return hands[-1]

    yield start
    for hand in hands:
        hand.close()


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    (tmp_path / "proc").mkdir()
    return FakeProc(tmp_path / "proc")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"
