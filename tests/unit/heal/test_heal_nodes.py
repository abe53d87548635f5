"""What a killed harness has left on a node is put back through another helper."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from chaos.base.wait import wait_for
from chaos.heal.heal import heal_run
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import LaunchSpec
from chaos.machine.remote.bundle import bundle
from chaos.machine.remote.client import HelperClient
from chaos.machine.remote.transport import SubprocessTransport
from chaos.platforms.nodes import END_NODES
from chaos.store.directory import create_run


def test_a_stopped_rank_of_a_node_is_continued_and_ended(tmp_path: Path) -> None:
    program = tmp_path / "remote_helper.pyz"
    program.write_bytes(bundle())
    run = create_run(tmp_path / "reports", "two-nodes")
    helper = HelperClient(
        SubprocessTransport((sys.executable, str(program)), {"PATH": os.environ["PATH"]}), 1, run.token
    )
    spec = LaunchSpec(run.token, "train", ("sleep", "1000"), {"PATH": "/usr/bin:/bin"}, tmp_path, tmp_path / "log")
    run.ledger.record(UndoStep("job", None, "end-job", {"run": run.token}, "end the job"))
    run.ledger.record(UndoStep("nodes", None, END_NODES, {"platform": "local-nodes"}, "end the remote helpers"))
    launcher = helper.start(spec)
    run.ledger.record(UndoStep("stop", "stop-1", "resume-process", asdict(launcher), "continue rank 1"))
    helper.signal("train", launcher, signal.SIGSTOP)
    wait_for("stop", lambda: helper.state(launcher) == "stopped", seconds=60)
    helper.close()
    run.lock.release()
    report = heal_run(run.path)
    assert report.failed == []
    assert report.done[0] == f"stop: continued {launcher}"
    assert any(f"ended process {launcher.pid}" in one for one in report.done)
    assert run.ledger.open_steps() == []
