"""Relative paths of a job that name files of its directory: in a run the job works in a directory of its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.init.source import Source

_OF_THE_SOURCE = {"__file__"}

_INPUT = re.compile(r"data|corpus|input|token|vocab|pre_?train|image|model_name|source")
_OUTPUT = re.compile(r"out|save|log|ckpt|checkpoint|result|resume|cache")


@dataclass(frozen=True)
class RelativePath:
    """A relative path of the source that is there, seen from the directory of the job."""

    text: str
    where: str
    option: str = ""
    """The option whose default it is: then an argument can name it in full."""


def relative_paths(sources: Sequence[Source], arguments: Sequence[str], directory: Path) -> Iterator[RelativePath]:
    """Yield the paths in the source that name existing files or directories, each once."""
    words = {part for word in arguments for part in (word, word.partition("=")[2])}
    known: set[str] = set()
    for source in sources:
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            text = node.value
            if text in known or text in words or not is_input(text, directory) or _is_word(node, source):
                continue
            known.add(text)
            yield RelativePath(text, source.where(node), _option_of(node, source))


def is_input(text: str, directory: Path) -> bool:
    """Return whether a text is a relative path, with a directory in it or a suffix, of something that is there."""
    if (
        not 1 < len(text) < 400
        or "\n" in text
        or text.startswith(("/", "-", "~"))
        or not ("/" in text or "." in text[1:])
    ):
        return False
    try:
        path = directory / text
        return path.exists() and path.resolve() != directory.resolve()
    except (OSError, ValueError):
        return False


def is_input_directory(option: str, text: str, directory: Path) -> bool:
    """Return whether a bare word names a directory that is there, as the value of an option for what is read."""
    name = option.lower()
    if not _INPUT.search(name) or _OUTPUT.search(name) or not re.fullmatch(r"\w[\w-]*", text):
        return False
    return (directory / text).is_dir()


def _is_word(node: ast.AST, source: Source) -> bool:
    """Return whether a text is a docstring, or is joined with the place of the source itself."""
    for outer in source.ancestors(node):
        if isinstance(outer, ast.Expr):
            return not isinstance(outer.value, ast.Call)
        if isinstance(outer, ast.stmt):
            return any(isinstance(name, ast.Name) and name.id in _OF_THE_SOURCE for name in ast.walk(outer))
    return False


def _option_of(node: ast.AST, source: Source) -> str:
    keyword = source.parents.get(node)
    call = source.parents.get(keyword) if isinstance(keyword, ast.keyword) and keyword.arg == "default" else None
    if not isinstance(call, ast.Call):
        return ""
    names = [
        argument.value
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    return next((name for name in names if name.startswith("--")), "")
