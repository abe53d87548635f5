"""Fixtures of the tests of this machine and the jobs on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.machine.job.processes import FoundProcess, find_run_processes
from chaos.machine.job.protocol import LaunchSpec
from chaos.machine.linux.children import subreaper
from chaos.machine.remote.bundle import bundle
from chaos.machine.remote.client import HelperClient, Visitors
from chaos.machine.remote.transport import SubprocessTransport
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


StartHelper = Callable[..., HelperClient]


@pytest.fixture
def start_helper(token: str, tmp_path: Path) -> Iterator[StartHelper]:
    """Start a remote helper as a node's platform does: from the bundle, with nothing of this process's modules."""
    path = tmp_path / "remote_helper.pyz"
    path.write_bytes(bundle())
    helpers: list[HelperClient] = []

    def start(node: int = 0, visitors: Visitors | None = None, own: dict[str, str] | None = None) -> HelperClient:
        transport = SubprocessTransport((sys.executable, "-I", str(path)), own or {"PATH": os.environ["PATH"]})
        helpers.append(HelperClient(transport, node, token, visitors))
        return helpers[-1]

    yield start
    for helper in helpers:
        helper.close()


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    (tmp_path / "proc").mkdir()
    return FakeProc(tmp_path / "proc")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"
