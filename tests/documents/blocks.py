"""The fenced blocks of a page, and what their first lines say about running them.

Behind the language may stand: ``file=NAME`` (the block is that file; the commands of the page find it), ``exit=N`` (how
the commands end; without it 0), ``nightly`` (too long for every day), ``unrun: REASON`` (it cannot be run here; another
form of it may be, see ``instead.py``) and ``refused`` (a scenario that must be refused). A block ``text shows`` holds
lines that the commands before it print. A block ``text recorded RUN`` holds lines about a run of the oracle.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TRANSLATIONS = sorted([ROOT / "README.zh-CN.md", *(ROOT / "docs" / "zh").glob("*.md")])
"""Pages whose blocks are those of the originals, where their commands are run (``test_translations.py``)."""

PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").rglob("*.md")} - set(TRANSLATIONS))

_FENCE = re.compile(r"^```(?P<language>\w*) ?(?P<about>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One block of a page."""

    page: Path
    line: int
    language: str
    about: str
    text: str

    @property
    def where(self) -> str:
        """``docs/start/tutorial.md:12``."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str | None:
        """The file that it is, None when it is none."""
        match = re.search(r"\bfile=(\S+)", self.about)
        return match[1] if match else None

    @property
    def code(self) -> int:
        """How its commands must end."""
        match = re.search(r"\bexit=(\d+)", self.about)
        return int(match[1]) if match else 0

    @property
    def shows(self) -> bool:
        """Whether it is what the commands before it print."""
        return self.language == "text" and self.about.startswith("shows")

    @property
    def nightly(self) -> bool:
        """Whether it is run in the nightly tests only."""
        return self.about.split()[:1] == ["nightly"]

    @property
    def refused(self) -> bool:
        """Whether it is a scenario that must be refused."""
        return self.about.startswith("refused ")

    @property
    def unrun(self) -> str | None:
        """Why it cannot be run here, None when it can."""
        return self.about.removeprefix("unrun:").strip() if self.about.startswith("unrun") else None


Perform = Callable[[Block], str]
"""Performs a block; returns what its commands print."""


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    text = page.read_text("utf-8")
    return [
        Block(page, text.count("\n", 0, match.start()) + 1, match["language"], match["about"], match["text"])
        for match in _FENCE.finditer(text)
    ]


def is_scenario(block: Block) -> bool:
    """Whether it is a whole scenario."""
    return block.language == "yaml" and block.text.startswith("chaos: 1\n")
