"""Values in the source of a job: constants, defaults of options, what the launch line gives, and sums of these."""

from __future__ import annotations

import ast
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from chaos.init.flags import Option, passed_options
from chaos.init.source import Call, Source, calls, last_word

_DEPTH = 12
"""Names that are followed from one to the next."""

_LARGEST = 10**12

_ARITHMETIC: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}

_PASSED_ON = {"int", "float", "str", "Path", "abs", "expanduser"}
"""Calls that return their argument, for what is asked here."""

_JOINS = {"join", "joinpath"}

_Target = tuple[ast.expr, Source]


@dataclass(frozen=True)
class Value:
    """A value, and the places that say it."""

    value: object
    places: tuple[str, ...] = ()

    @property
    def number(self) -> int | None:
        """The value as a whole number above 0; None for any other."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < _LARGEST:
            return None
        return int(value) if value == int(value) else None

    @property
    def origin(self) -> str:
        """The places in words."""
        return "; ".join(dict.fromkeys(self.places))


class Values:
    """Works out expressions of a job's files, as far as their text alone tells."""

    def __init__(
        self, sources: Sequence[Source], options: Sequence[Option], arguments: Sequence[str], launched: str
    ) -> None:
        """Read the assignments of the files. ``arguments`` are those of the launch line at ``launched``."""
        self._options = {option.attribute: option for option in options}
        self._passed = {
            option.attribute: Value(value, (f"{launched}, {option.name}",))
            for option, value in passed_options(options, arguments)
        }
        self._names: dict[tuple[ast.AST | None, str], list[_Target]] = defaultdict(list)
        self._attributes: dict[str, list[_Target]] = defaultdict(list)
        self._calls: dict[str, list[Call]] = defaultdict(list)
        for source in sources:
            self._read(source)

    def of(self, node: ast.expr | None, source: Source) -> Value | None:
        """Return the value of an expression, None where the text does not tell it."""
        return None if node is None else self._of(node, source, _DEPTH)

    def number(self, node: ast.expr | None, source: Source) -> Value | None:
        """Return the value of an expression that is a whole number above 0."""
        value = self.of(node, source)
        return value if value is not None and value.number is not None else None

    def followed(self, node: ast.expr, source: Source) -> tuple[ast.expr, Source]:
        """Return the expression that a name stands for, with its file; any other expression stands for itself."""
        for _ in range(_DEPTH):
            targets = self._targets(node, source) if isinstance(node, (ast.Name, ast.Attribute)) else []
            if len(targets) != 1 or targets[0][0] is node:
                break
            node, source = targets[0]
        return node, source

    def option(self, attribute: str) -> Value | None:
        """Return the value of an option: that of the launch line, else its default."""
        if attribute in self._passed:
            return self._passed[attribute]
        option = self._options.get(attribute)
        if option is None or option.default is None:
            return None
        return Value(option.default, (f"{option.where}, default of {option.name}",))

    def named(self, fits: Callable[[str], bool]) -> list[tuple[str, Value]]:
        """Return options, then constants of modules and classes, with a fitting name and a number as their value."""
        candidates = [(name, self.option(name)) for name in self._options if fits(name)]
        for (scope, name), targets in self._names.items():
            if fits(name) and (scope is None or isinstance(scope, ast.ClassDef)) and name not in self._options:
                candidates.append((name, self.of(*targets[0])))
        return [(name, value) for name, value in candidates if value is not None and value.number is not None]

    def called(self, name: str) -> list[Call]:
        """Return the calls of a name."""
        return self._calls.get(name, [])

    def text(self, node: ast.expr | None, source: Source, depth: int = _DEPTH) -> str:
        """Return a text, with ``{words}`` for each part that is not known: ``ckpt/rank_{rank}``."""
        if node is None:
            return ""
        if isinstance(node, ast.JoinedStr):
            return "".join(self.text(part, source, depth) for part in node.values)
        if isinstance(node, ast.FormattedValue):
            return self.text(node.value, source, depth)
        if isinstance(node, ast.BinOp) and _joins(node):
            slash = "/" if isinstance(node.op, ast.Div) else ""
            return f"{self.text(node.left, source, depth)}{slash}{self.text(node.right, source, depth)}"
        if isinstance(node, ast.Call):
            name = last_word(node.func)
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            if name in _JOINS:
                parts = [] if owner is None or last_word(owner) == "path" else [owner]
                return "/".join(self.text(part, source, depth) for part in [*parts, *node.args])
            if name in _PASSED_ON and node.args:
                return self.text(node.args[0], source, depth)
        value = self.of(node, source)
        if value is not None:
            return str(value.value)
        return self._followed_text(node, source, depth)

    def _followed_text(self, node: ast.expr, source: Source, depth: int) -> str:
        """Return the text of what a name stands for, where that is a text with unknown parts."""
        targets = self._targets(node, source)
        if depth > 0 and len(targets) == 1 and _is_text(targets[0][0]):
            return self.text(*targets[0], depth - 1)
        return "{" + (re.sub(r"[{}]", "", ast.unparse(node))[:60] or "…") + "}"

    def _read(self, source: Source) -> None:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._keep(target, node.value, source)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._keep(node.target, node.value, source)
            elif isinstance(node, (ast.AugAssign, ast.For)):
                for name in ast.walk(node.target):
                    if isinstance(name, ast.Name):  # a counter: it has more values than one
                        self._names[self._scope(name, source), name.id] += [(name, source), (name, source)]
        for call in calls(source):
            self._calls[call.name].append(call)

    def _keep(self, target: ast.expr, value: ast.expr, source: Source) -> None:
        """Keep what is assigned to a name or to an attribute."""
        if isinstance(target, ast.Name):
            scope = self._scope(target, source)
            self._names[scope, target.id].append((value, source))
            if isinstance(scope, ast.ClassDef):
                self._attributes[target.id].append((value, source))
        elif isinstance(target, ast.Attribute):
            self._attributes[target.attr].append((value, source))

    @staticmethod
    def _scope(node: ast.AST, source: Source) -> ast.AST | None:
        inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return next((outer for outer in source.ancestors(node) if isinstance(outer, inner)), None)

    def _of(self, node: ast.expr, source: Source, depth: int) -> Value | None:
        if depth <= 0:
            return None
        if isinstance(node, ast.Constant):
            return Value(node.value, (source.where(node),))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._of(node.operand, source, depth - 1)
            is_number = inner is not None and isinstance(inner.value, (int, float))
            return Value(-inner.value, inner.places) if is_number else None  # type: ignore[union-attr, operator]
        if isinstance(node, ast.BinOp):
            return self._sum(node, source, depth)
        if isinstance(node, ast.Call):
            return self._call(node, source, depth)
        if isinstance(node, ast.Attribute) and node.attr in self._options:
            return self.option(node.attr) or self._default(self._options[node.attr], source, depth)
        if isinstance(node, (ast.Name, ast.Attribute)):
            targets = self._targets(node, source)
            return self._of(*targets[0], depth - 1) if len(targets) == 1 else None
        return None

    def _default(self, option: Option, source: Source, depth: int) -> Value | None:
        return None if option.default_node is None else self._of(option.default_node, source, depth - 1)

    def _sum(self, node: ast.BinOp, source: Source, depth: int) -> Value | None:
        left, right = self._of(node.left, source, depth - 1), self._of(node.right, source, depth - 1)
        work = _ARITHMETIC.get(type(node.op))
        if left is None or right is None or work is None:
            return None
        values = left.value, right.value
        if not all(isinstance(value, (int, float)) and abs(value) < _LARGEST for value in values):
            return None
        try:
            return Value(work(*values), (*left.places, *right.places))  # type: ignore[arg-type]
        except ArithmeticError:
            return None

    def _call(self, node: ast.Call, source: Source, depth: int) -> Value | None:
        name = last_word(node.func)
        if name in _PASSED_ON and len(node.args) == 1:
            inner = self._of(node.args[0], source, depth - 1)
            if name == "int" and inner is not None:
                try:
                    return Value(int(str(inner.value)), inner.places)
                except ValueError:
                    return None
            return inner
        owner = last_word(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        if (name == "getenv" or (name, owner) == ("get", "environ")) and len(node.args) == 2:
            return self._of(node.args[1], source, depth - 1)
        return None

    def _targets(self, node: ast.expr, source: Source) -> list[_Target]:
        """Return what a name may stand for: assignments of its scope, of its module, or arguments of calls."""
        if isinstance(node, ast.Attribute):
            return self._attributes.get(node.attr, [])
        if not isinstance(node, ast.Name):
            return []
        function = source.function_of(node)
        while function is not None:
            if targets := self._names.get((function, node.id)):
                return targets
            if (parameter := self._parameter(function, node.id, source)) is not None:
                return parameter
            function = source.function_of(function)
        everywhere = self._names.get((None, node.id), [])
        return [target for target in everywhere if target[1] is source] or everywhere

    def _parameter(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, source: Source
    ) -> list[_Target] | None:
        """Return what the one call of a function gives for a parameter, else its default. None for no parameter."""
        plain = [*function.args.posonlyargs, *function.args.args]
        every = [*plain, *function.args.kwonlyargs]
        if name not in [parameter.arg for parameter in every]:
            return None
        parent = source.parents.get(function)
        is_method = isinstance(parent, ast.ClassDef)
        called = parent.name if is_method and function.name == "__init__" else function.name  # type: ignore[union-attr]
        sites = self.called(called)
        if len(sites) == 1:
            position = next((place for place, parameter in enumerate(plain) if parameter.arg == name), None)
            if position is not None and is_method:
                position -= 1
            if (value := sites[0].argument(position, name)) is not None:
                return [(value, sites[0].source)]
        if len(sites) > 1 and any(site.argument(None, name) is not None for site in sites):
            return []
        return [(value, source)] if (value := _default_of(function.args, name)) is not None else []


def _default_of(arguments: ast.arguments, name: str) -> ast.expr | None:
    plain = [*arguments.posonlyargs, *arguments.args]
    with_default = plain[len(plain) - len(arguments.defaults) :]
    for parameter, default in zip(with_default, arguments.defaults, strict=True):
        if parameter.arg == name:
            return default
    for parameter, kw_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if parameter.arg == name:
            return kw_default
    return None


def _is_text(node: ast.expr) -> bool:
    """Return whether an expression makes a text of parts: a sum, an f-string, a path that is joined."""
    if isinstance(node, ast.Call):
        return last_word(node.func) in _JOINS | _PASSED_ON
    return not isinstance(node, ast.Constant)


def _joins(node: ast.BinOp) -> bool:
    """Return whether a sum joins texts, or a division paths; else it is one of numbers."""
    parts = [node.left, node.right]
    while parts:
        part = parts.pop()
        if isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and isinstance(part.value, str)):
            return isinstance(node.op, (ast.Add, ast.Div))
        if isinstance(part, ast.BinOp):
            parts += [part.left, part.right]
    return isinstance(node.op, ast.Div)
