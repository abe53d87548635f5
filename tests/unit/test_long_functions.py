"""No function has more than 60 lines beside its docstring, or a reason for it stands here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "chaos"

MOST_LINES = 60

REASONS = {
    "rehearsal/jobs/mnist.py main": "a job's script, written as a user would: one function from arguments to training",
    "rehearsal/mindformers/kernels.py replace_attention": "a cell that is declared inside, since MindSpore is imported "
    "in a rank only",
}
"""File and function, to why it is longer."""


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function. Its docstring does not count: that of a command is its help."""
    assert function.end_lineno is not None
    first = function.body[0]
    docstring = 0
    if ast.get_docstring(function) is not None and first.end_lineno is not None:
        docstring = first.end_lineno - first.lineno + 1
    return function.end_lineno - function.lineno + 1 - docstring


def long_functions(package: Path) -> Iterator[str]:
    """File and name of every function with more lines than :data:`MOST_LINES`."""
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines_of(node) > MOST_LINES:
                yield f"{path.relative_to(package)} {node.name}"


def test_a_long_function_has_a_reason() -> None:
    assert set(long_functions(PACKAGE)) == set(REASONS)


def test_a_long_function_is_found(tmp_path: Path) -> None:
    body = "    pass\n"
    (tmp_path / "long.py").write_text(f"def short():\n{body * (MOST_LINES - 1)}\n\ndef long():\n{body * MOST_LINES}")
    assert list(long_functions(tmp_path)) == ["long.py long"]
