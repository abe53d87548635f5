"""The launcher's agent tells how ranks ended whose status the launcher collected, and says nothing of others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from chaos.agent.configuration import Configuration
from chaos.base.clock import boot_id
from chaos.history.reader import read_history
from chaos.machine.linux.children import ExitStatus
from chaos.machine.linux.process import ProcessIdentity
from chaos.run.launch.exit_statuses import ReapedByLauncher

LAUNCHER = """
import json, os, subprocess, sys
import chaos.agent.start
chaos.agent.start.start(sys.argv[1])
started = []
def launch(code, **environment):
    one = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, **environment})
    with open(f"/proc/{one.pid}/stat") as file:
        started.append((one.pid, int(file.read().rpartition(")")[2].split()[19])))
    return one
rank = {"MS_ROLE": "MS_WORKER", "MS_WORKER_NUM": "4"}
killed = launch("import os; os.kill(os.getpid(), 9)", MS_NODE_ID="2", **rank)
failed = launch("raise SystemExit(3)", MS_NODE_ID="1", **rank)
helper = launch("raise SystemExit(4)")
for one in (killed, failed, helper):
    one.wait()
print(json.dumps(started))
"""


def test_the_status_of_a_rank_that_the_launcher_collected_is_told(tmp_path: Path) -> None:
    history = tmp_path / "history"
    history.mkdir()
    configuration = tmp_path / "agent.json"
    configuration.write_text(json.dumps(asdict(Configuration("run", "train", str(history)))))
    environment = {key: value for key, value in os.environ.items() if key not in ("CHAOS_AGENT", "MS_ROLE", "RANK_ID")}
    ran = subprocess.run(
        [sys.executable, "-c", LAUNCHER, str(configuration)],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    killed, failed, helper = (ProcessIdentity(pid, start, boot_id()) for pid, start in json.loads(ran.stdout))
    answer = ReapedByLauncher(history, "train")
    assert answer(killed) == ExitStatus(signal=signal.SIGKILL)
    assert answer(failed) == ExitStatus(code=3)
    assert answer(helper) is None
    assert answer(ProcessIdentity(killed.pid, killed.start_time + 1, killed.boot)) is None
    assert ReapedByLauncher(history, "resume")(killed) is None
    read = read_history(history)
    assert read.problems == ()
    assert [event.data["child_rank"] for event in read.select("child.exit")] == [2, 1]


def test_a_launcher_without_ranks_writes_nothing(tmp_path: Path) -> None:
    answer = ReapedByLauncher(tmp_path, "train")
    assert answer(ProcessIdentity(1, 1, "boot")) is None
