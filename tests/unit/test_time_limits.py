"""No test asserts a limit of time that a busy machine can miss: the kind is looked for in the source of all of them.

What has to happen soon is shown by what happened: by which path, at which limit of many, by a clock of the test's own,
or by how the work grows (tests/kit/growing_cost.py).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
LEAST = 30.0
"""Seconds that a machine may be late by."""

WALL = {"monotonic", "monotonic_ns", "time", "time_ns"}
WORK = {"process_time", "process_time_ns", "perf_counter", "perf_counter_ns", "thread_time", "thread_time_ns"}
MEASURES_WORK = {
    "kit/growing_cost.py",  # compares it with itself
    "unit/base/test_wait.py",  # uses up some, and asserts that the rest is longer
    "fuzz/drive.py",  # prints it
}

_LOOKED_AT = re.compile(rf"wait_for\(|\b(?:{'|'.join(sorted(WALL | WORK))})\(")
_CONSTANT = re.compile(r"^(\w+) = (\d+(?:\.\d+)?)$", re.M)


def called(node: ast.AST) -> str:
    """The last name of what is called."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def constants(tree: ast.Module) -> dict[str, float]:
    """The numbers that a module gives names to."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = number(node.value, {})
            if value is not None:
                found[node.targets[0].id] = value
    return found


def number(node: ast.AST, known: dict[str, float]) -> float | None:
    """What an expression of numbers and known names comes to; None where it cannot be told."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=name):
            return known.get(name)
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as operator, right=right):
            one, two = number(left, known), number(right, known)
            if one is None or two is None:
                return None
            return one * two if isinstance(operator, ast.Mult) else one / two
    return None


def is_span(node: ast.AST, spans: set[str]) -> bool:
    """Whether an expression is the time that has passed since a reading of a clock."""
    if isinstance(node, ast.Name):
        return node.id in spans
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and called(node.left) in WALL | WORK


def short_limits(nodes: list[ast.AST], known: dict[str, float]) -> Iterator[int]:
    """Lines where what has passed is held against a limit below LEAST, or against one that cannot be told."""
    spans = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign) and is_span(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    at_least = {id(node.test) for node in nodes if isinstance(node, ast.Assert)}
    loops = {id(node.test) for node in nodes if isinstance(node, ast.While)}  # they let time pass
    for node in nodes:
        if isinstance(node, ast.Compare) and id(node) not in loops:
            sides = [node.left, *node.comparators]
            for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
                is_less = isinstance(operator, (ast.Lt, ast.LtE))
                less, more = (left, right) if is_less else (right, left)
                if is_span(less, spans):
                    limit = more
                elif is_span(more, spans) and id(node) not in at_least:  # `if passed > limit` is the same, turned round
                    limit = less
                else:
                    continue
                value = number(limit, known)
                if value is None or value < LEAST:
                    yield node.lineno


def short_waits(nodes: list[ast.AST], known: dict[str, float]) -> Iterator[int]:
    """Lines where ``wait_for`` gives what has to come less than LEAST, by the machine's own clock."""
    hoping = {
        id(inner)
        for node in nodes
        if isinstance(node, ast.With) and any(called(item.context_expr) == "raises" for item in node.items)
        for inner in ast.walk(node)
    }
    for node in nodes:
        if isinstance(node, ast.Call) and called(node) == "wait_for" and id(node) not in hoping:
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            value = number(given["seconds"], known) if "seconds" in given else None
            if "clock" not in given and value is not None and value < LEAST:
                yield node.lineno


def faults(text: str, name: str = "test_any.py", known: dict[str, float] | None = None) -> list[int]:
    """The lines of a file that may be missed by a busy machine."""
    if not _LOOKED_AT.search(text):
        return []
    tree = ast.parse(text)
    nodes, names = list(ast.walk(tree)), {**(known or {}), **constants(tree)}
    work = [node.lineno for node in nodes if isinstance(node, ast.Call) and called(node) in WORK]
    found = {*short_limits(nodes, names), *short_waits(nodes, names)}
    return sorted(found if name in MEASURES_WORK else found.union(work))


def test_no_test_asserts_a_time_that_a_busy_machine_can_miss() -> None:
    sources = {str(path.relative_to(TESTS)): path.read_text("utf-8") for path in sorted(TESTS.rglob("*.py"))}
    assert len(sources) > 400
    known: dict[str, float] = {}
    for text in sources.values():
        for name, value in _CONSTANT.findall(text):  # a name of several modules counts as its least
            known[name] = min(float(value), known.get(name, float(value)))
    found = [f"{name}:{line}" for name, text in sources.items() for line in faults(text, name, known)]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "assert time.monotonic() - began < 5",
        "assert monotonic() - began <= 29.9",
        "assert 5 > time.monotonic() - began",
        "LIMIT = 60.0\nassert time.monotonic() - began < LIMIT / 10",
        "assert time.monotonic() - began < unknown()",
        "passed = time.monotonic() - began\nassert 3 >= 2 > passed",
        "if time.monotonic() - began > 0.15:\n    slow.append(1)",
        "assert time.process_time() - began < 4",
        "costs.append(time.perf_counter() - began)",
        "wait_for('it', it, seconds=20)",
    ],
)
def test_a_short_limit_is_found(text: str) -> None:
    assert faults(text) == [len(text.split("\n    ")[0].splitlines())]


@pytest.mark.parametrize(
    "text",
    [
        "assert time.monotonic() - began < 30",
        "LIMIT = 600.0\nassert time.monotonic() - began < LIMIT / 2",
        "assert time.monotonic() - began > 0.5",
        "while time.monotonic() - began < 0.03:\n    pass",
        "wait_for('it', it, seconds=60)",
        "wait_for('it', it, seconds=2, clock=clock)",
        "with pytest.raises(DeadlineExpired):\n    wait_for('it', it, seconds=0.1)",
    ],
)
def test_a_long_limit_and_a_least_time_are_not(text: str) -> None:
    assert faults(text) == []
