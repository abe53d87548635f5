"""The Chinese pages keep step with the English ones: headings, blocks, commands, figures and links."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.documents.blocks import ROOT, TRANSLATIONS, blocks_of

START = ROOT / "docs" / "start"
GUIDES = [ROOT / "docs" / "guides" / "your-own-script.md"]
PAIRS = {ROOT / "README.md": ROOT / "README.zh-CN.md"} | {
    page: ROOT / "docs" / "zh" / page.name for page in (*sorted(START.glob("*.md")), *GUIDES)
}

_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def prose(page: Path) -> str:
    """The text of a page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def headings(page: Path) -> list[int]:
    """The levels of the headings in their order."""
    return [len(marks) for marks in re.findall(r"^(#+) ", prose(page), re.MULTILINE)]


def code(page: Path) -> Counter[str]:
    """The commands, keys and values that the prose names."""
    return Counter(re.findall(r"`([^`]+)`", prose(page)))


def figures(page: Path) -> Counter[str]:
    """The numbers of the prose outside code and links."""
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", prose(page))
    return Counter(re.findall(r"(?<![A-Za-z\d])\d+(?:\.\d+)*", text))


def links(page: Path) -> Counter[Path]:
    """The files that a page leads to, Chinese pages as their English originals."""
    original = {copy: page for page, copy in PAIRS.items()}
    targets = re.findall(r"\]\((?!https?:)([^)\s#]+)", prose(page))
    files = ((page.parent / target).resolve() for target in targets)
    return Counter(original.get(file, file) for file in files)


def table_rows(page: Path) -> list[int]:
    """The number of cells of each row of a table, without columns that only a translation needs."""
    extra = 1 if page == ROOT / "docs" / "zh" / "glossary.md" else 0
    rows = re.findall(r"^\|.*\|$", prose(page), re.MULTILINE)
    return [max(row.count(" | ") - (extra if row.count(" | ") == 3 else 0), 0) for row in rows]


def test_every_page_for_a_start_and_the_named_guides_have_a_translation() -> None:
    assert set(PAIRS.values()) == set(TRANSLATIONS)


@pytest.mark.parametrize(("page", "copy"), PAIRS.items(), ids=lambda page: page.name)
def test_a_translation_has_the_headings_of_the_original(page: Path, copy: Path) -> None:
    assert headings(copy) == headings(page)


@pytest.mark.parametrize(("page", "copy"), PAIRS.items(), ids=lambda page: page.name)
def test_a_translation_has_the_blocks_of_the_original(page: Path, copy: Path) -> None:
    assert [(b.language, b.about, b.text) for b in blocks_of(copy)] == [
        (b.language, b.about, b.text) for b in blocks_of(page)
    ]


@pytest.mark.parametrize(("page", "copy"), PAIRS.items(), ids=lambda page: page.name)
def test_a_translation_names_the_same_commands_figures_and_pages(page: Path, copy: Path) -> None:
    assert code(copy) == code(page)
    assert figures(copy) == figures(page)
    assert links(copy) == links(page)


@pytest.mark.parametrize(("page", "copy"), PAIRS.items(), ids=lambda page: page.name)
def test_a_translation_has_the_rows_of_the_original(page: Path, copy: Path) -> None:
    assert table_rows(copy) == table_rows(page)


@pytest.mark.parametrize("copy", TRANSLATIONS, ids=lambda page: page.name)
def test_each_paragraph_of_a_translation_is_chinese(copy: Path) -> None:
    foreign = [
        part
        for part in re.split(r"\n\s*\n", prose(copy))
        if len(part) > 60 and not part.startswith(("|", "[")) and not _CHINESE.search(part)
    ]
    assert foreign == []
