"""A process of the harness's that leaves by ``os._exit`` says why in its own log, and nowhere else leaves one so."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from tests.unit.agent.conftest import TREE

_LEAVES = """
import sys, threading
from chaos.agent.leaving import leave
print("printed, and not flushed")
{before}
thread = threading.Thread(target=leave, args=(7, "because of \\udc80"))
thread.start()
thread.join()
print("went on")
"""
BY_THEMSELVES = {
    "agent/leaving.py": "leave",
    # A fault that is an end by os._exit: it says so, and flushes nothing.
    "agent/acts.py": "_exit",
    # Beside the job, where nothing of the agent is imported.
    "faults/beside/burn.py": "_burn",
}


def left(python: str, before: str = "") -> subprocess.CompletedProcess[str]:
    text = _LEAVES.format(before=before)
    return subprocess.run([python, "-c", text], cwd=TREE.parent, capture_output=True, text=True, timeout=60)


def test_who_leaves_has_said_why_and_what_was_printed_before(python: str) -> None:
    done = left(python)
    assert (done.returncode, done.stdout, done.stderr) == (7, "printed, and not flushed\n", "because of \\udc80\n")


@pytest.mark.parametrize("before", ["sys.stdout.close()", "import os; os.close(1); os.close(2)", "sys.stdout = None"])
def test_who_cannot_say_it_leaves_all_the_same(python: str, before: str) -> None:
    done = left(python, before)
    assert (done.returncode, "went on" in done.stdout) == (7, False)


def test_no_process_of_ours_leaves_without_a_word() -> None:
    leaving = {
        (path.relative_to(TREE).as_posix(), function.name)
        for path in TREE.rglob("*.py")
        for function in _functions(path)
        if any(map(_leaves, ast.walk(function)))
    }
    assert leaving == set(BY_THEMSELVES.items())


def _functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.FunctionDef)]


def _leaves(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "_exit" and ast.unparse(node.value) == "os"
