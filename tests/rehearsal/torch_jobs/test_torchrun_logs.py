"""The real torchrun ends ranks: its log, and its directory of logs, are read as what has happened."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timezone
from pathlib import Path

import pytest

from chaos.base.wait import wait_for
from chaos.evidence.launcher.named_cause import compare, named_failures
from chaos.history.event import Event
from chaos.observe.logs.log_event import LogEvent
from chaos.observe.logs.reader import LogScan, built_in_readers, read_log

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]
READERS = built_in_readers(timezone.utc)
RANK = """
import os, signal, sys, time
from pathlib import Path
here = Path(sys.argv[1])
local_rank = int(os.environ["LOCAL_RANK"])
(here / f"pid_{local_rank}.tmp").write_text(str(os.getpid()))
(here / f"pid_{local_rank}.tmp").rename(here / f"pid_{local_rank}")
print(f"step 1 loss 0.{local_rank}", flush=True)
while not (here / "go").exists():
    time.sleep(0.05)
if local_rank == 1 and sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if local_rank == 1 and sys.argv[2] == "exit":
    os._exit(7)
while True:
    time.sleep(1)
"""


@contextmanager
def torchrun(folder: Path, act: str, *, ranks: int = 3) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """Start torchrun; yield it with the processes of its ranks, once all of them have begun."""
    (folder / "rank.py").write_text(RANK)
    words = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--log-dir", "logs", "--redirects", "3"]
    with (folder / "torchrun.log").open("wb") as output:
        launcher = subprocess.Popen(
            [sys.executable, *words, "rank.py", str(folder), act],
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"LOGLEVEL": "INFO", "OMP_NUM_THREADS": "1"},
        )
    files = [folder / f"pid_{local_rank}" for local_rank in range(ranks)]
    try:
        wait_for("ranks", lambda: all(file.exists() for file in files), seconds=120)
        yield launcher, [int(file.read_text()) for file in files]
    finally:
        if launcher.poll() is None:
            launcher.send_signal(signal.SIGTERM)  # it ends its ranks, too
        launcher.wait(120)


def read(path: Path) -> list[LogEvent]:
    return list(read_log(path, READERS))


@pytest.mark.parametrize(("act", "code"), [("kill", -9), ("exit", 7)])
def test_the_rank_that_ended_is_the_one_that_torchrun_names(tmp_path: Path, act: str, code: int) -> None:
    with torchrun(tmp_path, act) as (launcher, pids):
        (tmp_path / "go").touch()
        assert launcher.wait(120) == 1
    events = read(tmp_path / "torchrun.log")
    (named,) = named_failures(events)
    assert (named.local_rank, named.pid, named.code, named.launcher) == (1, pids[1], code, launcher.pid)
    hit = Event("fault.injecting", 1, 1, "harness", 1, "train", 1, pids[1], {"fault": "f"}, "history/harness.jsonl:1")
    assert compare(named, [hit]).cause == "hit"
    closed = {event.fields["worker_pid"] for event in events if event.kind == "torchrun.closing"}
    assert closed == {pids[0], pids[2]}
    other = Event("fault.injecting", 1, 1, "harness", 1, "train", 0, pids[0], {"fault": "f"}, "history/harness.jsonl:1")
    assert compare(named, [other]).cause == "other"


def test_its_directory_of_logs_is_read_whole(tmp_path: Path) -> None:
    with torchrun(tmp_path, "none") as (launcher, _):
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(120) == 1
    kinds = [event.kind for event in read(tmp_path / "torchrun.log")]
    assert {"torchrun.signalled", "torchrun.closing", "torchrun.ended_by"} <= set(kinds)
    logs = sorted((tmp_path / "logs").rglob("stdout.log"))
    assert [path.parent.name for path in logs] == ["0", "1", "2"]
    for path in logs:
        scan = LogScan()
        (event,) = read_log(path, READERS, scan=scan)
        assert (event.kind, event.rank, event.fields["loss_text"]) == ("train.loss", None, f"0.{path.parent.name}")
        assert scan.unknown == 0
