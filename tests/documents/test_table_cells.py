"""A table cell of a page is short. More words need a paragraph or a list below the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.blocks import ROOT

MOST = 25
"""Words of a cell, as CONTRIBUTING.md says."""

PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_QUOTED = re.compile(r"`[^`]+`")
"""A cell that is a line of a log or a command. It stands as the program prints it."""


def cells(text: str) -> Iterator[tuple[int, str]]:
    """The cells of all tables of a page, each with the number of its line."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("|"):
            yield from ((number, cell.strip()) for cell in re.split(r"(?<= )\|(?= )", line.strip().strip("|")))


def too_long(text: str) -> list[str]:
    """The cells of a page that have too many words."""
    return [
        f"line {number}: {words} words: {cell[:60]}"
        for number, cell in cells(text)
        if (words := len(cell.split())) > MOST and not _QUOTED.fullmatch(cell)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_cell_of_a_page_has_more_words_than_it_may(page: Path) -> None:
    assert too_long(page.read_text("utf-8")) == []


def test_the_words_of_each_cell_are_counted() -> None:
    line = " ".join(["word"] * MOST)
    assert too_long(f"| a | {line} |\n|---|---|\n| {line} | | {line} |\n") == []
    assert len(too_long(f"| a | {line} more |\n|---|---|\n| {line} more | {line} |\n")) == 2


def test_a_quoted_line_may_be_longer_and_prose_with_code_may_not() -> None:
    line = " ".join(["word"] * (MOST + 1))
    assert too_long(f"| `{line}` | train.step |\n") == []
    assert len(too_long(f"| `word` {line} `word` | train.step |\n")) == 1
