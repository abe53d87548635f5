"""The files of a job as data: syntax trees of the script and of the modules that it imports from beside it.

Nothing of them is imported or executed.
"""

from __future__ import annotations

import ast
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chaos.base.plain_files import read_plain

MOST_FILES = 60
"""Most modules of a job that are read."""

MOST_BYTES = 2 << 20
"""Largest script that is read."""


class UnreadableSource(Exception):
    """A file is no Python source that can be read. The text says why."""


@dataclass(frozen=True)
class Source:
    """A parsed file. ``name`` is what a reader calls it: its path, relative to the directory of the job."""

    path: Path
    name: str
    tree: ast.Module
    parents: dict[ast.AST, ast.AST] = field(repr=False)

    def where(self, node: ast.AST) -> str:
        """Return the file and the line of a node."""
        return f"{self.name}:{getattr(node, 'lineno', 1)}"

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a node lies in, the nearest first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def function_of(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """Return the function that a node lies in."""
        functions = (
            outer for outer in self.ancestors(node) if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef))
        )
        return next(functions, None)


@dataclass(frozen=True)
class Call:
    """A call, with the last word of the called name: ``save_checkpoint`` of ``ms.save_checkpoint(…)``."""

    node: ast.Call
    name: str
    source: Source

    @property
    def where(self) -> str:
        """The file and the line."""
        return self.source.where(self.node)

    def argument(self, position: int | None, *names: str) -> ast.expr | None:
        """Return an argument by its place or by one of its names."""
        for keyword in self.node.keywords:
            if keyword.arg in names:
                return keyword.value
        plain = self.node.args
        if position is None or position >= len(plain) or any(isinstance(argument, ast.Starred) for argument in plain):
            return None
        return plain[position]


def read_source(path: Path, name: str) -> Source:
    """Parse a file. Raises UnreadableSource."""
    try:
        content = read_plain(path.resolve(), MOST_BYTES)
    except OSError as error:
        raise UnreadableSource(str(error)) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a script's "\d" is the affair of its user
            tree = ast.parse(content, str(path))
        parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    except SyntaxError as error:
        raise UnreadableSource(f"{name}:{error.lineno or 1}: no Python 3 source: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnreadableSource(f"{name}: no Python source that can be parsed: {error}") from error
    return Source(path, name, tree, parents)


def read_with_modules(script: Path, directory: Path) -> tuple[list[Source], list[str]]:
    """Return the script and the modules that it imports from beside it, and a sentence for each that is left out.

    Raises UnreadableSource where the script itself cannot be read.
    """
    sources = [read_source(script, shown(script, directory))]
    waiting, known = deque(sources), {script.resolve()}
    left_out: list[str] = []
    while waiting:
        source = waiting.popleft()
        for path in _imported(source, script.parent):
            if path.resolve() in known:
                continue
            known.add(path.resolve())
            if len(sources) >= MOST_FILES:
                return sources, [*left_out, f"only {MOST_FILES} modules of the script were read"]
            try:
                sources.append(read_source(path, shown(path, directory)))
            except UnreadableSource as error:
                left_out.append(str(error))
            else:
                waiting.append(sources[-1])
    return sources, left_out


def shown(path: Path, directory: Path) -> str:
    """Return a path as a reader of the directory names it."""
    return str(path.relative_to(directory)) if path.is_relative_to(directory) else str(path)


def calls(source: Source) -> Iterator[Call]:
    """Yield every call of a file with a name, in the order of its lines."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and (name := last_word(node.func)):
            yield Call(node, name, source)


def last_word(node: ast.expr) -> str:
    """Return the last word of a dotted name; nothing for another expression."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def full_name(node: ast.expr, source: Source) -> str:
    """Return a dotted name with its import in front: ``torch.distributed.checkpoint.save`` of ``dcp.save``."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([_imported_name(node.id, source), *words])


def _imported_name(name: str, source: Source) -> str:
    """Return the full name of what an import gives a name; the name itself where none does."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname == name:
                    return alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return f"{node.module}.{alias.name}"
    return name


def imports(source: Source) -> set[str]:
    """Return the first words of the modules that a file imports."""
    words = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            words |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            words.add(node.module.partition(".")[0])
    return words


def _imported(source: Source, beside: Path) -> Iterator[Path]:
    """Yield the files beside the script, and of its packages, that a file imports."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(beside, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = beside
            if node.level:
                base = source.path.parent
                for _ in range(node.level - 1):
                    base = base.parent
            words = node.module.split(".") if node.module else []
            yield from _files(base, words)
            for alias in node.names:
                yield from _files(base, [*words, alias.name])


def _files(base: Path, words: list[str]) -> Iterator[Path]:
    """Yield the file of a module, or that of its package."""
    if not words:
        return
    path = base.joinpath(*words)
    for file in (path.with_name(path.name + ".py"), path / "__init__.py"):
        if file.is_file():
            yield file
            return
