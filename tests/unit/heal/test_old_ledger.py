"""A ledger of an earlier version is healed: the names and arguments of undo actions stay, wherever their code lies."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from chaos.base.registry import registry
from chaos.base.wait import wait_for
from chaos.heal.heal import heal_run
from chaos.history.ledger import UndoStep
from chaos.machine.linux.process import ProcessIdentity, identify, send_signal, state
from chaos.store.directory import ADOPTED, RunDirectory, update_run

Start = Callable[..., "subprocess.Popen[bytes]"]

MOVED = {
    "resume-process": "chaos.faults.signals.undo",
    "resume-adopted": "chaos.faults.signals.undo",
    "continue-training": "chaos.faults.pause.undo",
    "note-kept": "chaos.faults.checkpoints.undo",
    "restore-node": "chaos.faults.nodes.undo",
    "restore-limit-adopted": "chaos.faults.resources.undo",
}
"""Actions that lay in chaos/heal once, and the family that brings each now."""


def noted(run: RunDirectory, action: str, **arguments: Any) -> None:
    """Write a step as earlier versions have written it."""
    run.ledger.record(UndoStep(f"{action}-1", "f-1", action, arguments, "a note"))
    (line,) = [text for text in (run.path / "undo.jsonl").read_text().splitlines() if f'"{action}"' in text]
    assert json.loads(line)["action"] == action


def stopped(start: Start, run: str | None, **variables: str) -> ProcessIdentity:
    identity = identify(start("sleep", "1000", run=run, **variables).pid)
    send_signal(identity, signal.SIGSTOP)
    wait_for("stopped", lambda: state(identity) == "stopped", seconds=60)
    return identity


def plain(identity: ProcessIdentity) -> dict[str, Any]:
    return {"pid": identity.pid, "start_time": identity.start_time, "boot": identity.boot}


@pytest.mark.parametrize(("action", "module"), MOVED.items())
def test_an_action_that_has_moved_has_the_name_that_old_ledgers_give_it(action: str, module: str) -> None:
    assert registry("undo").built_in[action].load().act.partition(":")[0] == module


def test_a_ledger_of_a_run_is_healed(start: Start, dead: RunDirectory, tmp_path: Path) -> None:
    suspended = stopped(start, dead.token)
    record = dead.path / "history" / "train-rank_1-7.jsonl"
    record.parent.mkdir(exist_ok=True)
    record.touch()
    noted(dead, "note-kept", path=str(tmp_path / "lost"))
    noted(dead, "continue-training", ranks=[{"record": str(record), **plain(suspended)}])
    noted(dead, "resume-process", **plain(suspended))
    report = heal_run(dead.path)
    assert report.failed == []
    assert report.done[:3] == [
        f"resume-process-1: continued {suspended}",
        "continue-training-1: no rank is paused",
        f"note-kept-1: nothing was taken: there is no {tmp_path / 'lost'}",
    ]
    assert dead.ledger.read().open == []


def test_a_ledger_of_an_attached_job_is_healed_and_its_ranks_go_on(start: Start, dead: RunDirectory) -> None:
    update_run(dead.path, **{ADOPTED: {"directories": []}})
    rank = stopped(start, None, MS_ROLE="MS_WORKER", RANK_ID="3")
    soft, hard = resource.prlimit(rank.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(rank.pid, resource.RLIMIT_NOFILE, (soft - 1, hard))
    noted(dead, "restore-limit-adopted", **plain(rank), rank=3, soft=soft)
    noted(dead, "resume-adopted", **asdict(rank), rank=3)
    report = heal_run(dead.path)
    assert (report.failed, len(report.done)) == ([], 2)
    assert state(rank) == "alive"
    assert resource.prlimit(rank.pid, resource.RLIMIT_NOFILE) == (soft, hard)
