"""Reading the Python files of an installed package: trees, places, signatures. Nothing is imported or executed."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chaos.base.walking import entries_below


@dataclass(frozen=True)
class Source:
    """One file of a package. ``name`` is its path below the directory of the installation."""

    name: str
    tree: ast.Module

    def place(self, node: ast.AST) -> str:
        """Return the place of a node: file and line."""
        return f"{self.name}:{getattr(node, 'lineno', 1)}"


def sources(package: Path, rooms: tuple[str, ...], word: bytes) -> Iterator[Source]:
    """Yield the package's files with the word, in these directories or files of it. Only Python files count."""
    for room in rooms:
        start = package / room
        for path in [start] if start.is_file() else _python_files(start):
            try:
                data = path.read_bytes()
                if word in data:
                    yield Source(str(path.relative_to(package.parent)), ast.parse(data))
            except (OSError, ValueError, SyntaxError, RecursionError):
                continue


def _python_files(start: Path) -> list[Path]:
    return [path for path in entries_below(start) if path.name.endswith(".py")]


def signature(node: ast.FunctionDef) -> inspect.Signature:
    """Return the signature of a function; its defaults exist or not, without their values."""
    arguments = node.args
    kind = inspect.Parameter
    plain = [*arguments.posonlyargs, *arguments.args]
    without_default = len(plain) - len(arguments.defaults)
    parameters = [
        kind(
            argument.arg,
            kind.POSITIONAL_ONLY if at < len(arguments.posonlyargs) else kind.POSITIONAL_OR_KEYWORD,
            default=kind.empty if at < without_default else None,
        )
        for at, argument in enumerate(plain)
    ]
    if arguments.vararg:
        parameters.append(kind(arguments.vararg.arg, kind.VAR_POSITIONAL))
    parameters += [
        kind(argument.arg, kind.KEYWORD_ONLY, default=kind.empty if default is None else None)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.kwarg:
        parameters.append(kind(arguments.kwarg.arg, kind.VAR_KEYWORD))
    return inspect.Signature(parameters)


def takes(function: inspect.Signature, positional: int, keywords: tuple[str, ...] = ()) -> bool:
    """Return whether a function of this signature accepts such a call."""
    try:
        function.bind(*[None] * positional, **dict.fromkeys(keywords))
    except TypeError:
        return False
    return True


def in_classes(tree: ast.AST, inside: str | None = None) -> Iterator[tuple[ast.AST, str | None]]:
    """Yield every node, and the name of its class."""
    for node in ast.iter_child_nodes(tree):
        yield node, inside
        yield from in_classes(node, node.name if isinstance(node, ast.ClassDef) else inside)


def calls_in_classes(tree: ast.AST) -> Iterator[tuple[ast.Call, str | None]]:
    """Yield every call, and the name of its class."""
    return ((node, inside) for node, inside in in_classes(tree) if isinstance(node, ast.Call))


def starred(call: ast.Call) -> bool:
    """Return whether the files leave the arguments open: ``*arguments``, ``**keywords``."""
    return any(isinstance(argument, ast.Starred) for argument in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    )


def last_name(node: ast.expr) -> str:
    """Return ``c`` of ``a.b.c``, and of ``c``; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
