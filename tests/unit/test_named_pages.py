"""A message that names a page of docs/ says that the page is in the repository: an installed package has none."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from chaos.scenario.schema import scenario_schema
from tests.documents.blocks import ROOT
from tests.kit.shipped import SHIPPED

PAGE = re.compile(r"docs/[\w/-]+\.md")

MANUAL = "chaos/manual/"
"""Texts of pages of docs/ themselves."""


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file but for docstrings; the help of a command is shown, though it is its docstring."""
    tree = ast.parse(path.read_text("utf-8"))
    owners = [node for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
    bodies = [node for owner in owners if not _is_command(owner) for node in owner.body]
    docstrings = {id(node.value) for node in bodies if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def _is_command(owner: ast.AST) -> bool:
    return isinstance(owner, ast.FunctionDef) and any("command" in ast.unparse(by) for by in owner.decorator_list)


def test_a_page_that_a_message_names_is_there_and_is_said_to_be_in_the_repository() -> None:
    bare = []
    for path in sorted((ROOT / "chaos").rglob("*.py")):
        if path.relative_to(ROOT).as_posix().startswith(MANUAL):
            continue
        for line, text in messages(path):
            for page in PAGE.finditer(text):
                assert (ROOT / page[0]).is_file(), f"{path}:{line}: there is no {page[0]}"
                if not text[page.end() :].startswith(" in the repository"):
                    bare.append(f"{path.relative_to(ROOT)}:{line}: {text}")
    assert bare == []


def test_the_schema_says_that_a_page_is_in_the_repository() -> None:
    texts = json.dumps(scenario_schema())
    pages = list(PAGE.finditer(texts))
    assert len(pages) > 5
    assert [page[0] for page in pages if not texts[page.end() :].startswith(" in the repository")] == []


def test_shipped_scenarios_say_so_too() -> None:
    """Their comments are in the wheel."""
    files = sorted(SHIPPED.rglob("*.yaml"))
    assert len(files) > 100
    texts = {path.name: " ".join(re.sub(r"\n\s*#", " ", path.read_text("utf-8")).split()) for path in files}
    pages = [(name, text, page) for name, text in texts.items() for page in PAGE.finditer(text)]
    assert [name for name, text, page in pages if not text[page.end() :].startswith(" in the repository")] == []
    assert all((ROOT / page[0]).is_file() for _, _, page in pages) and pages
