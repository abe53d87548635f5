"""README.md is short, shows what a recorded run prints, and docs/README.md lists every page."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from chaos.report.analyze import analyze
from chaos.report.terminal import print_short
from tests.documents.blocks import PAGES, ROOT, TRANSLATIONS, Block, blocks_of
from tests.oracle.archive import read_archive
from tests.oracle.recorded_runs import archive_of

README = ROOT / "README.md"
INDEX = ROOT / "docs" / "README.md"

RECORDED = [block for page in PAGES for block in blocks_of(page) if block.about.startswith("recorded ")]


def test_the_readme_has_at_most_90_lines() -> None:
    assert README.read_text("utf-8").count("\n") <= 90


@pytest.mark.parametrize("block", RECORDED, ids=[block.where for block in RECORDED])
def test_a_recorded_run_prints_the_lines_that_a_page_shows(block: Block, tmp_path: Path) -> None:
    place = tmp_path / "run"
    read_archive(archive_of(block.about.split()[1]), place)
    console = Console(width=160, file=io.StringIO())
    print_short(analyze(place), console, place)
    assert isinstance(console.file, io.StringIO)
    printed = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]
    shown = [" ".join(line.split()) for line in block.text.splitlines()]
    assert [line for line in printed if line in shown] == shown


def test_a_page_shows_a_recorded_run() -> None:
    assert README in {block.page for block in RECORDED}


def test_the_index_lists_every_page() -> None:
    linked = {(INDEX.parent / name).resolve() for name in re.findall(r"\]\(([\w./-]+\.md)\)", INDEX.read_text("utf-8"))}
    assert {page for page in PAGES if page not in (README, INDEX)} == linked - set(TRANSLATIONS)
