"""Each term of the glossary has one word: no page, help text or scenario says another, and quoted messages exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from chaos.cli.main import cli
from chaos.scenario.find import iter_scenarios
from tests.documents.blocks import PAGES, ROOT, Block, blocks_of
from tests.kit.shipped import SHIPPED

GLOSSARY = ROOT / "docs" / "start" / "glossary.md"

QUOTED = [block for page in PAGES for block in blocks_of(page) if block.about == "said"]
"""Messages of the program, each on a line, with … for names and numbers."""


def rows() -> list[list[str]]:
    """The rows of the glossary's tables with terms: term, meaning, words that are not used."""
    tables = GLOSSARY.read_text("utf-8").partition("## Abbreviations")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", tables, re.M)]
    return [row for row in cells if row[0] != "term" and not row[0].startswith("---")]


def not_used() -> dict[str, str]:
    """Each word that is not used, with the term that is."""
    return {word: row[0] for row in rows() for word in row[2].split(", ") if re.search(r"\w", word)}


FORBIDDEN = re.compile(r"(?<![\w-])(?:" + "|".join(map(re.escape, not_used())) + r")s?(?![\w-])", re.IGNORECASE)


def wrong_words(text: str) -> list[str]:
    """The words of a text that the glossary does not use, outside code and italics."""
    prose = re.sub(
        r"```.*?^```|`[^`]*`|(?<!\*)\*[^*\n]+\*(?!\*)|\]\([^)]*\)", " ", text, flags=re.DOTALL | re.MULTILINE
    )
    return [
        f"{word}: say {not_used().get(word.lower(), 'the term')}" for word in FORBIDDEN.findall(" ".join(prose.split()))
    ]


def help_texts(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """The help of a command, its options and its subcommands, each with the command's name."""
    yield name, command.help or ""
    yield from ((name, option.help or "") for option in command.params if isinstance(option, click.Option))
    if isinstance(command, click.Group):
        for part in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), part)
            assert found is not None
            yield from help_texts(found, f"{name} {part}")


@pytest.mark.parametrize("page", [page for page in PAGES if page != GLOSSARY], ids=lambda page: page.stem)
def test_a_page_uses_the_terms_of_the_glossary(page: Path) -> None:
    assert wrong_words(page.read_text("utf-8")) == []


def test_help_texts_use_the_terms_of_the_glossary() -> None:
    texts = list(help_texts(cli, "chaos"))
    assert len(texts) > 100
    assert {name: wrong for name, text in texts if (wrong := wrong_words(text))} == {}


def test_scenarios_use_the_terms_of_the_glossary() -> None:
    files = list(iter_scenarios([SHIPPED]))
    assert len(files) > 100
    assert {path.name: wrong for path in files if (wrong := wrong_words(path.read_text("utf-8")))} == {}


def test_no_term_is_a_word_that_another_term_replaces() -> None:
    assert len(rows()) > 40 and len(not_used()) > 40
    terms = {term for row in rows() for term in row[0].split(", ")}
    assert terms.isdisjoint(not_used())
    assert sum(len(row[0].split(", ")) for row in rows()) == len(terms), "a term is explained twice"


def test_a_wrong_word_is_found_in_prose_and_not_in_code() -> None:
    assert wrong_words("The golden\nrun differs.") == ["golden run: say baseline"]
    assert wrong_words("Mocks are loaded.") == ["Mocks: say the term"]
    assert wrong_words("The event `stranger`, an *experiment*, a [page](mock.md), the **plan**.") == []


@cache
def literals() -> tuple[str, ...]:
    """Every text in the code, also the constant parts of a text with values."""
    return tuple(
        " ".join(node.value.split())
        for path in sorted((ROOT / "chaos").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


@pytest.mark.parametrize("block", QUOTED, ids=[block.where for block in QUOTED])
def test_a_quoted_message_is_one_of_the_program(block: Block) -> None:
    for line in block.text.splitlines():
        parts = [part.strip() for part in line.split("…") if re.search(r"\w{2}", part)]
        assert parts, f"{block.where}: nothing is quoted"
        missing = [part for part in parts if not any(part in text for text in literals())]
        assert missing == [], f"{block.where}: the program does not print {missing}"


def test_messages_are_quoted() -> None:
    assert len(QUOTED) > 10
