"""A program that runs scenarios from Python is checked against the types of the interface."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

import chaos

PROGRAM = """\
from chaos.api import Chaos, Run, run
from chaos.api.checks import Finding, History, Plan, passed

outcome: Run = run("kill-rank", victim=1)
seconds: float = outcome.recovery.total
reveal_type(outcome.verdict)

def test_mine(chaos: Chaos) -> None:
    assert chaos.run("kill-rank").recovery.seconds("load") < 60

def check(plan: Plan, history: History) -> Finding:
    return passed("a", "b", history.events[0].source)

run("kill-rank", cell=1)
"""


def test_the_package_says_that_it_has_types() -> None:
    package = Path(chaos.__file__).parent
    assert (package / "py.typed").is_file()
    assert '"py.typed"' in (package.parent / "pyproject.toml").read_text()


@pytest.mark.nightly
def test_a_program_is_checked_against_the_types(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found, _, status = api.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(program)])
    assert status == 1
    assert "Literal['pass'" in found
    assert found.count("error:") == 1 and '"cell"' in found
