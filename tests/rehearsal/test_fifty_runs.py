"""Fifty runs that are started at once on one machine wait for each other, and touch nothing but what is their own."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from chaos.machine.job.processes import RUN_VARIABLE
from chaos.machine.leases import Leases
from chaos.machine.linux.procfs import environment
from tests.rehearsal.kit import SCENARIOS, Chaos, Done, said

PATIENT = SCENARIOS / "plain-patient.yaml"
RUNS = 50
SECONDS = 3 * 3600.0
"""Within which all must have ended: far more than it takes, for machines that do other things besides."""
_LOOK_SECONDS = 0.3


@dataclass(frozen=True)
class Seen:
    """A process of a run's job: what nobody else may use while it lives."""

    run: str
    pid: int
    start: float
    cores: frozenset[int]
    ports: frozenset[int]


@dataclass
class Witness:
    """Looks at the processes of all jobs below a directory, by the kernel's word and nobody else's."""

    jobs: Path
    clashes: list[str] = field(default_factory=list)
    most: int = 0
    runs: set[str] = field(default_factory=set)
    _over: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """Look once. Two processes count as there at the same time only if the first still is when both were seen."""
        found = [one for pid in psutil.pids() if (one := self._seen(pid)) is not None]
        alive = [one for one in found if _started(one.pid) == one.start]
        self.runs |= {one.run for one in alive}
        self.most = max(self.most, len({one.run for one in alive}))
        for number, one in enumerate(alive):
            for other in alive[number + 1 :]:
                if one.run != other.run and (one.cores & other.cores or one.ports & other.ports):
                    self.clashes.append(f"{one} and {other}")

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look again and again meanwhile."""

        def again() -> None:
            while not self._over.wait(_LOOK_SECONDS):
                self.look()

        thread = threading.Thread(target=again)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _seen(self, pid: int) -> Seen | None:
        run = (environment(pid) or {}).get(RUN_VARIABLE)
        start = _started(pid)
        if run is None or start is None:
            return None
        try:
            process = psutil.Process(pid)
            if not Path(process.cwd()).is_relative_to(self.jobs):
                return None
            ports = {
                connection.laddr.port for connection in process.net_connections("tcp") if connection.status == "LISTEN"
            }
            return Seen(run, pid, start, frozenset(process.cpu_affinity()), frozenset(ports))
        except psutil.Error:
            return None


def _started(pid: int) -> float | None:
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


@contextmanager
def foreign(reports: Path) -> Iterator[None]:
    """What is of others: processes that look like ranks, a port, files. It must be as it was when the runs are over."""
    run = reports / "plain-patient-of-another"
    private = Path(tempfile.mkdtemp(prefix="chaos-"))
    (run / "job" / "checkpoints").mkdir(parents=True)
    for place in (run, run / "job" / "checkpoints", private):
        (place / "kept.tmp").write_bytes(os.urandom(64))
    code = "import time; time.sleep(1e6)"
    command = [sys.executable, "-c", code, "chaos.rehearsal.plain.train", f"--output={run / 'job'}"]
    others = [subprocess.Popen(command, env={**os.environ, RUN_VARIABLE: f"another-{number}"}) for number in range(2)]
    with socket.socket() as listening:
        # Leased only until it is bound: nobody else has it then, and the runs have to see that it is busy.
        with Leases().take_ports(1) as lease:
            listening.bind(("127.0.0.1", lease.numbers[0]))
            listening.listen()
        listening.setblocking(False)
        before = _files(run), _files(private)
        try:
            yield
            assert [process.poll() for process in others] == [None, None]
            assert {psutil.Process(process.pid).status() for process in others} == {psutil.STATUS_SLEEPING}
            with pytest.raises(BlockingIOError):
                listening.accept()  # nobody has called
            assert (_files(run), _files(private)) == before
        finally:
            for process in others:
                process.kill()
                process.wait()
            for path in private.iterdir():
                path.unlink()
            private.rmdir()


def _files(place: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() + str(path.stat().st_mtime_ns)
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }


@pytest.mark.nightly
def test_fifty_runs_at_once_wait_for_each_other_and_touch_nothing_of_anybody(fresh: Chaos) -> None:
    began = time.monotonic()
    witness = Witness(fresh.reports.resolve())
    with foreign(fresh.reports), witness.watching():
        harnesses = [fresh.start_run(PATIENT) for _ in range(RUNS)]
        for harness in harnesses:
            harness.process.wait(max(1.0, began + SECONDS - time.monotonic()))
    done = [Done(harness.process.wait(), harness.output, harness.errors) for harness in harnesses]
    assert [result.errors for result in done if result.code != 0] == []
    seconds = time.monotonic() - began
    runs = [result.run for result in done]
    assert {run.result["verdict"] for run in runs} == {"pass"}, said(runs[0].result["checks"])
    assert len({run.token for run in runs}) == RUNS
    assert {run.token for run in runs} <= witness.runs
    assert witness.clashes == []
    assert 0 < witness.most <= len(os.sched_getaffinity(0))
    hit = {(event.pid, event.data["start_time"]) for run in runs for event in run.history.select("fault.injecting")}
    assert len(hit) == RUNS
    ranks = [{(event.pid, event.data["start_time"]) for event in run.history.select("rank.found")} for run in runs]
    assert sum(map(len, ranks)) == len(set.union(*ranks)) == RUNS * 4
    for run, own in zip(runs, ranks, strict=True):
        assert {(event.pid, event.data["start_time"]) for event in run.history.select("fault.injecting")} <= own
        assert run.history.select("caller.refused") == []
        assert run.left() == []
    baselines = [run for run in fresh.runs() if run.path.name.startswith("baseline-")]
    assert len(baselines) == 1, "the runs share the fault-free run of their key"
    waited = sum("leased to another job" in result.errors for result in done)
    print(f"{RUNS} runs in {seconds:.0f} s, {waited} of them waited, {witness.most} went on at once at most")
