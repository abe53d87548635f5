"""The job starts before what judges it, or acts on it, is loaded; other commands load no more than they need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.spread import at_night

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[4]
SCENARIOS = ROOT / "scenarios"
PLAIN = str(SCENARIOS / "mechanisms" / "ttp" / "plain-kill-rank.yaml")
REHEARSAL = str(SCENARIOS / "mechanisms" / "ttp" / "kill-rank.yaml")

NEVER = (
    "docker",
    "junitparser",
    "kubernetes",
    "mindspore",
    "numpy",
    "paramiko",
    "psutil",
    "rich",
    "chaos.checks.judge",
    "chaos.doctor.control_groups",
    "chaos.doctor.network",
    "chaos.doctor.sdk.fit",
    "chaos.evidence.injection",
    "chaos.evidence.proof",
    "chaos.machine.remote.client",
    "chaos.observe",
    "chaos.report.analyze",
    "chaos.run.inject.injection",
)
"""Modules and packages that nothing needs before there is something to act on, to read or to judge.

A family's proofs come with ``chaos.evidence.proof``, the code of other platforms with the packages that they rest on.
"""

UNTIL_START = """
import json, sys
from pathlib import Path
from chaos.cli.main import entry
from chaos.run import driver
from tests.unit.run.own_cores import OwnCores

driver.Leases = lambda: OwnCores(Path(sys.argv[1], "leases"))

def hook(event, given):
    if event == "subprocess.Popen" and "CHAOS_RUN" in (given[3] or ()):
        raise KeyboardInterrupt(print(json.dumps(sorted(sys.modules)), file=sys.__stdout__, flush=True))

sys.addaudithook(hook)
sys.exit(entry(sys.argv[2:]))
"""
"""Interrupts ``chaos run`` where it would start the first process of its job, and prints what is loaded then."""

AFTERWARDS = """
import json, sys
from chaos.cli.main import entry
ended = entry(sys.argv[1:])
print("\\n" + json.dumps(sorted(sys.modules)))
sys.exit(ended)
"""


def loaded(code: str, *arguments: str) -> list[str]:
    """Those of NEVER that a call of chaos has loaded."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    listed = [line for line in done.stdout.splitlines() if line.startswith('["')]
    assert listed, done.stdout + done.stderr
    return sorted(set(NEVER) & set(json.loads(listed[0])))


def test_a_job_starts_before_what_acts_on_it_and_judges_it_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "leases").mkdir(mode=0o700)
    assert loaded(UNTIL_START, str(tmp_path), "run", PLAIN, "--reports", str(tmp_path / "reports")) == []


@pytest.mark.parametrize(
    "arguments",
    [
        at_night(["--help"]),
        at_night(["list", REHEARSAL]),
        ["validate", REHEARSAL],
        at_night(["plan", PLAIN]),
        ["plan", REHEARSAL],
        at_night(["schema"]),
    ],
    ids=lambda arguments: " ".join(Path(argument).stem for argument in arguments),
)
def test_what_starts_no_job_loads_neither(arguments: list[str]) -> None:
    assert loaded(AFTERWARDS, *arguments) == []
