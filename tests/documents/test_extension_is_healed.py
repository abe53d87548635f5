"""The fault of docs/guides/extending-undo.md is undone by its own action, also after SIGKILL of its harness."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaos.machine.linux.process import NoSuchProcess, WrongProcess, identify, send_signal
from tests.documents.blocks import ROOT, Perform, blocks_of

pytestmark = pytest.mark.processes

HARNESS = """
import os, subprocess, sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from chaos.faults.kind import Victim
from chaos.machine.job.processes import RUN_VARIABLE
from chaos.machine.linux.process import identify, state
from chaos.base.registry import registry
from chaos.store.directory import create_run
from chaos.heal.undo import healable

run = create_run(Path(sys.argv[1]), "bind-core")
rank = subprocess.Popen(["sleep", "1000"], env={**os.environ, RUN_VARIABLE: run.token}, start_new_session=True)
kind = registry("faults").load("bind-core")
victim = Victim(1, identify(rank.pid), Path("none"))
for step in healable(kind.undo_steps("bind-1", [victim])):
    run.ledger.record(step)
job = SimpleNamespace(state=state)
kind.inject(job, victim)
assert kind.evidence(job, victim) is not None
print(rank.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def environment(place: Path) -> dict[str, str]:
    path = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(place / "cache")}


@pytest.fixture
def killed(place: Path, perform: Perform, environment: dict[str, str]) -> Iterator[Path]:
    """The reports directory of a harness that was killed under the fault, which is still there."""
    for block in blocks_of(ROOT / "docs" / "guides" / "extending-undo.md"):
        if block.file is not None:
            perform(block)
    reports = place / "reports"
    command = [sys.executable, "-c", HARNESS, str(reports)]
    with subprocess.Popen(
        command, cwd=place, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as harness:
        assert harness.stdout is not None
        rank = int(harness.stdout.readline())
        identity = identify(rank)
        harness.send_signal(signal.SIGKILL)
    assert len(os.sched_getaffinity(rank)) == 1
    yield reports
    with contextlib.suppress(NoSuchProcess, WrongProcess):
        send_signal(identity, signal.SIGKILL)


def heal(reports: Path, environment: dict[str, str], code: int) -> dict[str, Any]:
    """What ``chaos heal`` says of the one run, in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", "chaos", "heal", "--json", "--reports", str(reports)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    return dict(run)


def test_heal_calls_the_action_that_the_package_registers(killed: Path, environment: dict[str, str]) -> None:
    cores = sorted(os.sched_getaffinity(0))
    healed = heal(killed, environment, 0)
    assert healed["failed"] == []
    assert any(f"has cores {cores} again" in one for one in healed["done"])


def test_where_the_package_is_missing_heal_fails_and_names_it(
    killed: Path, environment: dict[str, str], place: Path
) -> None:
    without = {key: value for key, value in environment.items() if key != "PYTHONPATH"}
    (failed,) = heal(killed, without, 3)["failed"]
    assert "there is no undo action 'spread-out' here: install the package" in failed
    assert "undo action of chaos-bound 1.0" in failed
    assert heal(killed, environment, 0)["failed"] == []
