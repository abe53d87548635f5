"""A real run listens for its own processes only, refuses everybody else and says so; nobody reads its secret."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from chaos.machine.job.processes import find_run_processes
from chaos.rehearsal.ttp.wire import Link
from tests.rehearsal.kit import WAIT_SECONDS, Chaos, Run, checks_of

CANARY = "canary-7f3a9c-of-the-environment"
LOOPBACK = ("127.", "::1")
HELD = """
import time
from pathlib import Path
from chaos.faults.signals.kill import Kill

inject = Kill.inject

def held(self, job, victim):
    while not Path({go!r}).exists():
        time.sleep(0.05)
    return inject(self, job, victim)

Kill.inject = held
"""
"""Python that makes the harness keep the job at the fault's barrier until the file ``go`` is there."""


@dataclass
class Seen:
    """What was seen of a run from outside while it went on."""

    secret: str = ""
    listening: set[tuple[str, int]] = field(default_factory=set)
    told: list[str] = field(default_factory=list)


def watch(run: Run, harness: int, seen: Seen) -> None:
    """Note every listening socket and every command line of the run's processes, and environments with the secret."""
    own = [one.pid for one in find_run_processes(run.token)]
    for pid in [harness, *own]:
        with contextlib.suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            seen.listening |= {
                (connection.laddr.ip, connection.laddr.port)
                for connection in process.net_connections("inet")
                if connection.status == psutil.CONN_LISTEN or connection.type == socket.SOCK_DGRAM
            }
            seen.told += [" ".join(process.cmdline()), *process.environ().values()]


def modes(private: Path) -> Iterator[tuple[str, int]]:
    for path in (private, *private.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            yield path.name, stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("scenario", ["plain-kill-rank", pytest.param("kill-rank", marks=pytest.mark.nightly)])
def test_a_run_listens_for_its_own_only_and_keeps_its_secret(fresh: Chaos, tmp_path: Path, scenario: str) -> None:
    chaos, go = fresh, tmp_path / "go"
    harness = chaos.start(
        *("run", f"{scenario}.yaml", "--cores", "1", "--reports", chaos.reports),
        env={"CHAOS_TEST_TOKEN": CANARY},
        patch=HELD.format(go=str(go)),
    )
    run = harness.run(scenario)
    seen = Seen()
    harness.until("the secret", lambda: (run.private / "secret").is_file())
    seen.secret = (run.private / "secret").read_text()
    assert len(seen.secret) == 64
    harness.event(run, "rank.found", rank=0)

    # Strangers at the channel: without the secret, and of another run.
    for words in ({"secret": "0" * 64, "run": run.token}, {"secret": seen.secret, "run": "another"}):
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(WAIT_SECONDS)
            caller.connect(str(run.private / "agents"))
            hello = {"message": "hello", "attempt": "train", "rank": 1, "pid": 1, **words}
            caller.sendall((json.dumps(hello) + "\n").encode())
            assert caller.recv(100) == b""

    # A stranger at the controller.
    def controller() -> int | None:
        watch(run, harness.process.pid, seen)
        return next((port for _, port in seen.listening), None)

    with socket.create_connection(("127.0.0.1", harness.until("a listening controller", controller))) as caller:
        caller.settimeout(WAIT_SECONDS)
        link = Link(caller)
        link.send({"message": "register", "rank": 1, "run": run.token, "nonce": "n"})
        assert (link.receive() or {}).get("message") == "challenge"
        link.send({"message": "proof", "proof": "0" * 64})
        assert link.receive() is None
    go.touch()

    open_to_others = []
    while harness.process.poll() is None:
        watch(run, harness.process.pid, seen)
        open_to_others += [
            (name, oct(mode)) for name, mode in modes(run.private) if name.startswith("chaos-") and mode & 0o77
        ]
        with contextlib.suppress(subprocess.TimeoutExpired):
            harness.process.wait(0.5)
    done = harness.end()

    assert done.code == 0, done.errors + done.output
    assert seen.listening
    assert [listener for listener in seen.listening if not listener[0].startswith(LOOPBACK)] == []
    assert open_to_others == []

    # The refusals are in the record, and in the report.
    entries = [(one.data["channel"], one.data["what"]) for one in run.history.select("caller.refused")]
    assert ("agents", "a connection did not show this run's secret; ignored") in entries
    assert ("agents", "a connection is of another run; ignored") in entries
    (refused,) = [
        check for check in checks_of(run.result, "pass") if check["expected"].startswith("every listener of the run")
    ]
    assert "did not show this run's secret" in refused["seen"]
    assert "controller: a registration was ignored: it did not prove that it knows this run's secret" in refused["seen"]

    # The secret, and whatever else the harness was given, is nowhere.
    files = [path for path in chaos.reports.rglob("*") if path.is_file()]
    assert {"result.json", "junit.xml", "run.json", "plan.json", "undo.jsonl"} <= {path.name for path in files}
    for path in files:
        content = path.read_bytes()
        assert seen.secret.encode() not in content, path
        assert CANARY.encode() not in content, path
    again = chaos("analyze", run.path, "--json")
    for text in (done.output, done.errors, again.output, again.errors, *seen.told):
        assert seen.secret not in text
    assert any(CANARY in text for text in seen.told)  # what was looked at are the real environments
    assert not run.private.exists()
    assert run.left() == []
    assert os.path.lexists(run.path)
