"""A launcher that overwrites PYTHONPATH: the agent comes in by a .pth file, and without one nothing passes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from chaos.doctor import Machine, needs_of, probe
from chaos.rehearsal.mindformers.job import KIND
from tests.rehearsal.kit import Chaos, Done, checks_of, said

LACKING = [result.seen for result in probe(needs_of(KIND), Machine()) if not result.ok]
pytestmark = [pytest.mark.nightly, pytest.mark.skipif(bool(LACKING), reason=", ".join(LACKING))]

ROOT = Path(__file__).parents[3]
CHECKOUT = ROOT / "scenarios" / "mindformers" / "jobs" / "checkout"
LAUNCHER = "scripts/msrun_launcher.sh"
KEPT = "export PYTHONPATH=$checkout${PYTHONPATH:+:$PYTHONPATH}"

SCENARIO = """\
chaos: 1
name: overwritten
baseline: none
job:
  kind: mindformers-rehearsal
  checkout: checkout
  config: llama.yaml
  overrides: {parallel_config.data_parallel: 2}
  steps: 12
faults:
  - {kind: kill, target: {ranks: [0, 1]}, trigger: {step: 8, phase: allreduce.enter}}
expect: {mechanism: none, resume: {step: 7}}
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python of one's own with all that this one has, and its msrun."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    python = venv / "bin" / "python"
    (packages_of(python) / "all.pth").write_text(
        f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n", "utf-8"
    )
    program = (Path(sys.executable).parent / "msrun").read_text("utf-8")
    msrun = python.with_name("msrun")
    msrun.write_text(program.replace(program.splitlines()[0], f"#!{python}", 1), "utf-8")
    msrun.chmod(0o755)
    return python


def packages_of(python: Path) -> Path:
    """The directory of its packages."""
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(subprocess.check_output([python, "-c", asked], text=True).strip())


def run_with(chaos: Chaos, place: Path, python: Path) -> Done:
    """``chaos run`` by this Python, of a checkout whose launcher lets nothing on PYTHONPATH but itself."""
    shutil.copytree(CHECKOUT, place / "checkout")
    launcher = place / "checkout" / LAUNCHER
    text = launcher.read_text("utf-8")
    assert KEPT in text
    launcher.write_text(text.replace(KEPT, "export PYTHONPATH=$checkout"), "utf-8")
    scenario = place / "overwritten.yaml"
    scenario.write_text(SCENARIO, "utf-8")
    search = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    chaos.python = str(python)
    return chaos("run", scenario, "--json", "--reports", chaos.reports, env={"PYTHONPATH": search})


def test_with_the_file_among_the_packages_it_passes(fresh: Chaos, tmp_path: Path, python: Path) -> None:
    shutil.copy(ROOT / "chaos" / "agent" / "chaos-agent.pth", packages_of(python))
    done = run_with(fresh, tmp_path, python)
    assert done.code == 0, done.errors + done.output
    (start,) = done.run.history.select("agent.start", attempt="train", rank=0)
    assert start.data["argv"][0] == "python"


def test_without_it_the_ranks_never_join(fresh: Chaos, tmp_path: Path, python: Path) -> None:
    done = run_with(fresh, tmp_path, python)
    assert done.code == 2, done.errors + done.output
    assert "ranks 0-1 never joined" in said(checks_of(done.run.result, "unknown"))
    assert checks_of(done.run.result, "fail") == []
