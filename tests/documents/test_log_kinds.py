"""docs/reference/logs.md names the kinds of event of each reader: all of them, and no other."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

from tests.documents.blocks import ROOT
from tests.kit.log_forms import form_rows

PAGE = ROOT / "docs" / "reference" / "logs.md"
SAME_MESSAGES = "quoted"
"""The reader of messages without a prefix: they have the kinds of the readers that know the prefix."""


def kinds_of_page() -> dict[str, Counter[str]]:
    """The kinds in the first cells of the tables, by reader."""
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    reader = ""
    for line in PAGE.read_text("utf-8").splitlines():
        if match := re.fullmatch(r"Reader: `(\w+)`", line):
            reader = match[1]
        elif line.startswith("| `"):
            kinds[reader].update(re.findall(r"`([\w.]+)`", line.split(" | ")[0]))
    return kinds


def test_the_page_names_each_kind_of_each_reader_once() -> None:
    known: dict[str, set[str]] = defaultdict(set)
    for _, reader, kind in form_rows():
        known[reader].add(kind)
    quoted = known.pop(SAME_MESSAGES)
    assert quoted <= set().union(*known.values())
    page = kinds_of_page()
    assert {reader: set(kinds) for reader, kinds in page.items()} == known
    assert [kind for kinds in page.values() for kind, count in kinds.items() if count > 1] == []
