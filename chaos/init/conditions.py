"""The conditions under which a line of a job comes to be executed: the tests round it, also those of its callers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from chaos.init.source import Call, Source, last_word
from chaos.init.values import Values

_DEPTH = 3
"""Callers that are followed from one to the next."""

_MOST_CALLERS = 12
"""Callers of one function that are looked at."""

_RANK = re.compile(r"(?:(?:local|global|world|my)_?)?rank(?:_?id)?|get_rank|get_local_rank", re.IGNORECASE)
_FIRST_RANK = re.compile(
    r"(?:is_)?(?:main|master|rank_?(?:0|zero)|first)(?:_(?:process|rank|node|worker))?", re.IGNORECASE
)


@dataclass(frozen=True)
class Condition:
    """A test that decides whether a line is reached. ``holds`` is false where the line is reached if the test fails."""

    test: ast.expr
    source: Source
    holds: bool = True


class Unit(Enum):
    """The unit in which saves are counted."""

    STEP = "step"
    EPOCH = "epoch"


def conditions(node: ast.AST, source: Source, values: Values, depth: int = _DEPTH) -> Iterator[Condition]:
    """Yield the tests round a line, then those round the calls of its function or of its class."""
    inner = node
    for outer in source.ancestors(node):
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
            body = outer.body if isinstance(outer.body, list) else [outer.body]
            yield Condition(outer.test, source, holds=inner in body)
        if isinstance(outer, ast.BoolOp) and isinstance(outer.op, ast.And):
            yield from (Condition(test, source) for test in outer.values if test is not inner)
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _left_before(outer, inner, source)
            if depth > 0:
                for call in callers(outer, source, values)[:_MOST_CALLERS]:
                    yield from conditions(call.node, call.source, values, depth - 1)
            return
        inner = outer


def callers(function: ast.FunctionDef | ast.AsyncFunctionDef, source: Source, values: Values) -> list[Call]:
    """Return the calls of a function; of a method also those that make an object of its class.

    In its own file a function of the module is called by its bare name: ``torch.save`` is no call of ``save``.
    """
    parent = source.parents.get(function)
    own = [] if function.name.startswith("__") else values.called(function.name)
    if isinstance(parent, ast.Module):
        own = [call for call in own if call.source is not source or isinstance(call.node.func, ast.Name)]
    return [*own, *values.called(parent.name)] if isinstance(parent, ast.ClassDef) else own


def of_rank_0(condition: Condition) -> bool:
    """Return whether a condition lets rank 0 alone go on."""
    for test in _parts(condition.test):
        if condition.holds and _is_first(test):
            return True
        if not condition.holds and _is_other(test):
            return True
    return False


def asks_rank(condition: Condition) -> bool:
    """Return whether a condition looks at the rank at all."""
    return any(isinstance(node, ast.expr) and _names_rank(node) for node in ast.walk(condition.test))


def every(condition: Condition) -> tuple[ast.expr, Unit] | None:
    """Return the number of steps or epochs of ``step % N == 0``, and which of the two are counted."""
    for test in _parts(condition.test):
        remainder, zero = test, condition.holds
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            remainder = test.operand
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            remainder = test.left
            zero = condition.holds == isinstance(test.ops[0], ast.Eq)
        elif isinstance(test, ast.BinOp):
            zero = not condition.holds
        if zero and isinstance(remainder, ast.BinOp) and isinstance(remainder.op, ast.Mod):
            words = " ".join(last_word(node) for node in ast.walk(remainder.left) if isinstance(node, ast.expr))
            is_epoch = "epoch" in words.lower() and "step" not in words.lower()
            return remainder.right, Unit.EPOCH if is_epoch else Unit.STEP
    return None


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _parts(part)
    else:
        yield test


def _is_first(test: ast.expr) -> bool:
    """Return whether a test is ``rank == 0``, ``not rank`` or ``is_main_process``."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        return _compares_rank(test, 0)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _names_rank(test.operand)
    name = last_word(test.func) if isinstance(test, ast.Call) else last_word(test)
    return bool(_FIRST_RANK.fullmatch(name))


def _is_other(test: ast.expr) -> bool:
    """Return whether a test is ``rank != 0``, ``rank`` or ``not is_main_process``."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.NotEq, ast.Gt)):
        return _compares_rank(test, 0)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_first(test.operand)
    return _names_rank(test)


def _compares_rank(test: ast.Compare, number: int) -> bool:
    sides = test.left, test.comparators[0]
    return any(
        _names_rank(side) and isinstance(other, ast.Constant) and other.value == number
        for side, other in (sides, sides[::-1])
    )


def _names_rank(node: ast.expr) -> bool:
    name = last_word(node.func) if isinstance(node, ast.Call) else last_word(node)
    return bool(_RANK.fullmatch(name))


def _left_before(
    function: ast.FunctionDef | ast.AsyncFunctionDef, inner: ast.AST, source: Source
) -> Iterator[Condition]:
    """Yield the tests of a function by which it returns before it comes to a line: ``if rank != 0: return``."""
    for statement in function.body:
        if statement is inner:
            return
        if isinstance(statement, ast.If) and isinstance(statement.body[-1], (ast.Return, ast.Raise)):
            yield Condition(statement.test, source, holds=False)
