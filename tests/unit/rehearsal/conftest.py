"""Fixtures of the rehearsal's tests: jobs of plain Python ranks under the SDK stand-in."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import chaos
from chaos.base.wait import wait_for
from chaos.machine.leases import Leases
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.ttp.log import TtpLogReader
from chaos.rehearsal.device import communicator, links, meeting
from chaos.rehearsal.device.communicator import Communicator
from tests.unit.rehearsal.communicators import LIMIT, Group, LetLimitPass

SECONDS = 60.0
RANK = Path(__file__).with_name("ttp_rank.py")
SDK = Path(chaos.__file__).parent / "rehearsal" / "sdk"
TREE = Path(chaos.__file__).parents[1]


class Ranks:
    """The processes of one job, and what they left in its directory."""

    def __init__(self, directory: Path, port: int, options: dict[str, Any]) -> None:
        defaults: dict[str, Any] = {
            "ranks": 4,
            "groups": [[0, 2], [1, 3]],
            "controller": 0,
            "port": port,
            "steps": 8,
            "step_seconds": 0.01,
            "acts": [],
            "saving_fails": [],
            "alone": False,
            "after_seconds": {},
            "busy_seconds": 0.0,
            "limit": SECONDS,
            "timings": {},
        }
        self.directory = directory
        self.port = port
        self.job = {**defaults, **options}
        (directory / "job.json").write_text(json.dumps(self.job))
        (directory / "secret").write_text(secrets.token_hex(8))
        (directory / "links").mkdir()
        configuration = {
            "run": "run-1",
            "attempt": "train",
            "history": str(directory),
            "secret": str(directory / "secret"),
            "settings": {"timings": "fast"},
        }
        (directory / "agent.json").write_text(json.dumps(configuration))
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, [SDK, TREE])),
            "CHAOS_AGENT": str(directory / "agent.json"),
            "TTP_LOG_PATH": str(directory / "ttp"),
            "OMP_NUM_THREADS": "1",
        }
        self.processes = [self.start(sys.executable, str(RANK), str(rank)) for rank in range(self.job["ranks"])]

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.directory / "output").open("ab") as output:
            return subprocess.Popen(
                command,
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def codes(self, *ranks: int) -> list[int]:
        """Wait for the end of these ranks, of all by default, and return their return codes."""
        chosen = [self.processes[rank] for rank in ranks or range(len(self.processes))]
        wait_for(
            "end of the ranks",
            lambda: all(process.poll() is not None for process in chosen),
            seconds=SECONDS,
            detail=lambda: f"{[process.poll() for process in self.processes]}: {self.output()}",
        )
        return [process.returncode for process in chosen]

    def output(self) -> str:
        return (self.directory / "output").read_text()

    def left(self, pattern: str) -> list[str]:
        """Names of files that the ranks left."""
        return sorted(str(path.relative_to(self.directory)) for path in self.directory.glob(pattern))

    def log(self, rank: int) -> list[LogEvent]:
        """The events of a rank's log, as the reader of the vendor's logs finds them."""
        reader = TtpLogReader()
        path = self.directory / "ttp" / f"ttp_log.log.{self.processes[rank].pid}"
        lines = path.read_text().splitlines()
        assert reader.recognises(lines[:1])
        return [event for line in lines if (event := reader.read(line)) is not None]

    def states(self, rank: int = 0) -> list[str]:
        return [event.fields["state"] for event in self.log(rank) if event.kind == "ttp.state"]

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


Start = Callable[..., Ranks]


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[Start]:
    """Start a job: ``ranks(acts=[(2, 5, "end", "SIGKILL")])``."""
    with running(tmp_path) as start:
        yield start


@contextmanager
def running(directory: Path) -> Iterator[Start]:
    """Start one job in the directory; its processes are ended afterwards."""
    made: list[Ranks] = []
    with Leases().take_ports(1) as ports:

        def start(**options: Any) -> Ranks:
            (directory / "job").mkdir()
            made.append(Ranks(directory / "job", ports.numbers[0], options))
            return made[-1]

        try:
            yield start
        finally:
            for one in made:
                one.end()


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    """The ranks of one communicator, of 40 at most."""
    with ThreadPoolExecutor(40) as pool:
        yield Group(tmp_path, pool)


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let three ranks be so many that not each is connected to every other one."""
    monkeypatch.setattr(communicator, "_MESH", 2)


@pytest.fixture
def let_limit_pass(monkeypatch: pytest.MonkeyPatch) -> LetLimitPass:
    """Put the clock of the communicators forward, and wake those that sleep until their limit."""
    passed = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed[0])
    for module in (communicator, links, meeting):
        monkeypatch.setattr(module, "time", clock)

    def let_limit_pass(ranks: Iterable[Communicator]) -> None:
        passed[0] = LIMIT
        for one in ranks:
            os.write(one._links._wake_write, b"x")

    return let_limit_pass
