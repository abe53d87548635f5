"""Whatever ends a session, all of it is put back, the latest first, and what is left over is on record."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.base.clock import SYSTEM_CLOCK
from chaos.base.refusal import Refused
from chaos.base.wait import Deadline, wait_for
from chaos.history.ledger import Ledger, LedgerError, UndoStep
from chaos.history.reader import read_history
from chaos.history.writer import HistoryWriteError, HistoryWriter
from chaos.machine.job.processes import find_run_processes
from chaos.machine.linux.process import identify, state
from chaos.plan.model import Plan
from chaos.run.session import Session, open_session, put_back_faults
from chaos.run.watch.ports_left import left_of_port, listens
from chaos.scenario.models.scenario import Scenario
from chaos.store.directory import RunDirectory
from tests.unit.conftest import MakeDeep
from tests.unit.run.fakes import Watcher

pytestmark = pytest.mark.processes

Start = Callable[..., "subprocess.Popen[bytes]"]
Open = Callable[..., AbstractContextManager[Session]]


@pytest.fixture
def history(run: RunDirectory) -> HistoryWriter:
    return HistoryWriter(run.path / "history" / "harness.jsonl", writer="harness", run=run.token, clock=SYSTEM_CLOCK)


@pytest.fixture
def opened(run: RunDirectory, history: HistoryWriter) -> Open:
    """Open a session of the run."""
    plan: Any = SimpleNamespace(layout=SimpleNamespace(ranks=2))  # a session keeps the rest of it for others

    def opened(ports: tuple[int, ...] = (), **job: Any) -> AbstractContextManager[Session]:
        checked: Plan = plan
        scenario = Scenario.model_validate(
            {"chaos": 1, "name": "n", "cluster": {"ranks": 4}, "job": {"steps": 5, **job}}
        )
        return open_session(
            scenario,
            run.path,
            checked,
            run,
            history,
            ports=ports,
            cores=(),
            progress=Watcher(),
            clock=SYSTEM_CLOCK,
            deadline=Deadline("run", 60),
        )

    return opened


def hygiene(run: RunDirectory) -> dict[str, Any]:
    (event,) = read_history(run.path / "history").select("hygiene")
    return event.data


CLEAN: dict[str, Any] = {"orphans": [], "ports": [], "stale": [], "private_left": False}


def suspended(run: RunDirectory, start: Start) -> subprocess.Popen[bytes]:
    """A process of the run that is stopped, with its undo step in the ledger."""
    process = start("sleep", "1000", run=run.token)
    victim = identify(process.pid)
    run.ledger.record(UndoStep("stop-rank-1", "stop", "resume-process", asdict(victim)))
    process.send_signal(signal.SIGSTOP)
    wait_for("stop", lambda: state(victim) == "stopped", seconds=60)
    return process


def closed(run: RunDirectory) -> list[str]:
    """Ids of closed steps, in the order in which they were closed."""
    return list(run.ledger.read().closed)


def test_a_job_that_keeps_checkpoints_in_memory_has_a_place_for_them_that_goes_with_the_run(
    run: RunDirectory, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaos.run.session.MEMORY", tmp_path)
    with opened(storage={"memory": True}) as session:
        assert session.memory is not None
        assert (session.memory.parent, session.memory.stat().st_mode & 0o777) == (tmp_path, 0o700)
        (session.memory / "rank_0").write_bytes(b"state")
    assert not session.memory.exists()
    assert closed(run) == ["job", "memory-directory", "private-directory"]
    assert hygiene(run) == CLEAN


def test_a_machine_without_a_file_system_in_memory_is_told(
    run: RunDirectory, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaos.run.session.MEMORY", tmp_path / "none")
    with (
        pytest.raises(Refused, match=r"job\.storage\.memory: this machine has no .*none"),
        opened(storage={"memory": True}),
    ):
        raise AssertionError("the session must not open")
    assert closed(run) == ["job", "private-directory"]


@pytest.mark.parametrize("error", [None, RuntimeError("a check failed"), KeyboardInterrupt()])
def test_everything_is_put_back_faults_first_and_directories_last(
    run: RunDirectory, opened: Open, start: Start, error: BaseException | None
) -> None:
    def work() -> None:
        with opened() as session:
            assert session.private.is_dir()
            assert session.memory is None
            assert [step.id for step in run.ledger.open_steps()] == ["private-directory", "job"]
            suspended(run, start)
            if error is not None:
                raise error
            return

    if error is None:
        work()
    else:
        with pytest.raises(type(error)):
            work()
    assert closed(run) == ["stop-rank-1", "job", "private-directory"]
    assert find_run_processes(run.token) == []
    assert hygiene(run) == CLEAN
    (healed,) = read_history(run.path / "history").select("fault.healed")
    assert healed.data["fault"] == "stop"
    assert healed.data["how"].startswith("continued process")


def test_faults_are_put_back_before_the_job_is_ended(run: RunDirectory, opened: Open, start: Start) -> None:
    with opened() as session:
        process = suspended(run, start)
        put_back_faults(session)
        assert closed(run) == ["stop-rank-1"]
        assert state(identify(process.pid)) == "alive"
        assert session.private.is_dir()
        put_back_faults(session)
    assert len(read_history(run.path / "history").select("fault.healed")) == 1


def test_a_session_that_cannot_be_opened_leaves_nothing(
    run: RunDirectory, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_channel(path: Path, **_: Any) -> None:
        assert (path.parent / "secret").is_file()
        raise OSError("no sockets on this file system")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("chaos.run.session.Channel", no_channel)
    with pytest.raises(OSError, match="no sockets"), opened():
        pytest.fail("there is no channel")
    assert list(tmp_path.glob("chaos-*")) == []
    assert closed(run) == ["job", "private-directory"]
    assert hygiene(run) == CLEAN


def test_what_is_left_over_is_recorded(run: RunDirectory, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chaos.run.watch.ports_left.environment", lambda pid: {"CHAOS_RUN": run.token})
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with opened((port,)) as session:
            job = run.path / "job" / "checkpoints" / "step_5_tmp"
            job.mkdir(parents=True)
            (session.private / ".chaos-run").write_text("another run")
        assert hygiene(run) == {
            "orphans": [],
            "ports": [port],
            "stale": ["job/checkpoints/step_5_tmp"],
            "private_left": True,
        }
    (session.private / ".chaos-run").write_text(run.token)
    assert [step.id for step in run.ledger.open_steps()] == ["private-directory"]
    for path in session.private.iterdir():
        path.unlink()
    session.private.rmdir()


@pytest.mark.parametrize("failing", ["ledger", "history"])
def test_a_full_disk_keeps_no_process_alive(
    run: RunDirectory,
    opened: Open,
    start: Start,
    history: HistoryWriter,
    monkeypatch: pytest.MonkeyPatch,
    failing: str,
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise LedgerError("disk full") if failing == "ledger" else HistoryWriteError("disk full")

    with pytest.raises((LedgerError, HistoryWriteError), match="disk full"), opened() as session:
        suspended(run, start)
        if failing == "ledger":
            monkeypatch.setattr(Ledger, "close", full)
        else:
            monkeypatch.setattr(history, "record", full)
    assert find_run_processes(run.token) == []
    assert not session.private.exists()


def test_a_port_that_nobody_listens_on_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert listens(port)
    assert not listens(port)


def test_a_port_of_another_run_is_not_left_by_this_one() -> None:
    code = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); input()"
    variables = {**os.environ, "CHAOS_RUN": "another"}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as listener:
        assert listener.stdout is not None
        port = int(listener.stdout.readline())
        assert listens(port)
        assert left_of_port(port, "this") is None
        assert left_of_port(port, "another") == port
        listener.communicate("\n")


def test_a_port_whose_listener_is_in_no_run_is_told_with_its_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        left = left_of_port(port, "this")
        assert isinstance(left, dict)
        assert (left["port"], [listener["pid"] for listener in left["listeners"]]) == (port, [os.getpid()])
        monkeypatch.setattr("psutil.net_connections", lambda kind: [])
        assert left_of_port(port, "this") == {"port": port, "listeners": []}


def test_directories_too_deep_to_be_searched_are_recorded_and_everything_is_put_back(
    run: RunDirectory, opened: Open, make_deep: MakeDeep
) -> None:
    with opened():
        make_deep(run.path / "job" / "deep")
        (run.path / "job" / "a.tmp").touch()
    assert closed(run) == ["job", "private-directory"]
    message = f"{run.path / 'job'}: has more than 256 levels of directories below"
    assert hygiene(run) == {**CLEAN, "stale": ["job/a.tmp"], "unsearched": [message]}
