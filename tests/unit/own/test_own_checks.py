"""A check of the user's own states pass, fail or unknown; whatever else becomes of it is unknown."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chaos.checks.own.statements import own_statements
from chaos.own.allowed import NOTHING, Allowed, allowed
from chaos.own.checks import run_checks
from chaos.own.program import run_program
from tests.kit.runs.good_run import good_run
from tests.unit.own.conftest import OwnRun

pytestmark = pytest.mark.processes

MODULE = """\
from collections.abc import Iterator

from chaos.api.checks import Finding, History, Plan, failed, passed, unknown

def good(plan: Plan, history: History) -> Finding:
    print("some words")
    start = history.first("run.start")
    return passed(f"{plan.layout.ranks} ranks", "they are there", start.source)

def several(plan: Plan, history: History) -> Iterator[Finding]:
    yield failed("a", "b")
    yield unknown("c", "d")
    raise ValueError("no more")

def nothing(plan: Plan, history: History) -> None: ...

def raising(plan: Plan, history: History) -> None:
    {}["key"]

def leaving(plan: Plan, history: History) -> None:
    raise SystemExit(0)

def truth(plan: Plan, history: History) -> bool:
    return True

def texts(plan: Plan, history: History) -> list[str]:
    return ["pass"]

def killed(plan: Plan, history: History) -> None:
    import os
    os.kill(os.getpid(), 9)
"""


def judged(own_run: OwnRun, *functions: str, allowance: Allowed | None = None) -> dict[str, list[tuple[str, str]]]:
    """The verdicts and observations by function."""
    (own_run.directory / "mine.py").write_text(MODULE)
    (own_run.owned.path / "plan.json").write_bytes(
        (good_run().write(own_run.directory / "run") / "plan.json").read_bytes()
    )
    shutil.rmtree(own_run.directory / "run")
    names = [f"mine:{function}" for function in functions]
    own_run.history.record("run.start", checks=names)
    allowance = allowed(names, []) if allowance is None else allowance
    run_checks(names, own_run.owned.path, own_run.directory, own_run.place, allowance, own_run.history.record)
    found: dict[str, list[tuple[str, str]]] = {function: [] for function in functions}
    for finding in own_statements(own_run.read()):
        found[finding.check.partition(":")[2]].append((finding.verdict, finding.seen))
    return found


def test_statements_and_every_other_end_of_a_check(own_run: OwnRun) -> None:
    ends = ("good", "several", "nothing", "raising", "leaving", "truth", "texts", "killed", "missing")
    found = judged(own_run, *ends)
    line = MODULE.splitlines().index('    {}["key"]') + 1
    raised = MODULE.splitlines().index('    raise ValueError("no more")') + 1
    left = MODULE.splitlines().index("    raise SystemExit(0)") + 1
    assert found == {
        "good": [("pass", "they are there")],
        "several": [("fail", "b"), ("unknown", "d"), ("unknown", f"ValueError: no more (mine.py:{raised})")],
        "nothing": [("unknown", "it made none")],
        "raising": [("unknown", f"KeyError: 'key' (mine.py:{line})")],
        "leaving": [("unknown", f"SystemExit: 0 (mine.py:{left})")],
        "truth": [("unknown", "TypeError: it returned bool, not statements of chaos.api.checks")],
        "texts": [("unknown", "TypeError: a statement is str: make it by passed(), failed() or unknown()")],
        "killed": [("unknown", "the process of the check ended with signal 9")],
        "missing": [("unknown", "AttributeError: mine.py has no function missing")],
    }
    end = own_run.read().first("check.end", check="mine:good")
    assert end is not None and end.data["output"] == "some words\n"
    assert not list(own_run.owned.path.glob(".check-*")) and not own_run.owned.ledger.open_steps()


def test_a_check_that_is_not_allowed_is_not_run(own_run: OwnRun) -> None:
    found = judged(own_run, "good", allowance=NOTHING)
    assert found == {"good": [("unknown", "it is not allowed here, so it was not run")]}


def test_a_run_without_an_end_of_its_check_is_unknown(own_run: OwnRun) -> None:
    own_run.history.record("run.start", checks=["mine:good"])
    own_run.history.record("check.statement", check="mine:good", verdict="pass", expected="a", seen="b", where=[])
    verdicts = [finding.verdict for finding in own_statements(own_run.read())]
    assert verdicts == ["pass", "unknown"]


def test_a_program_is_ended_at_its_limit_with_all_that_it_has_started(own_run: OwnRun) -> None:
    marker = own_run.directory / "child"
    program = f"(setsid sleep 600 & echo $! > {marker}); sleep 600"
    ended = run_program(own_run.place, "hook-x", ["sh", "-c", program], 2.0)
    assert ended.timed_out and not ended.ok
    pid = int(marker.read_text())
    status = Path(f"/proc/{pid}/status")
    assert not status.exists() or "zombie" in status.read_text()
