"""The sections of docs/reference/faults.md."""

from __future__ import annotations

import re
from functools import cache

from tests.documents.blocks import ROOT


@cache
def _families() -> tuple[str, ...]:
    return tuple(re.split(r"^## ", (ROOT / "docs" / "reference" / "faults.md").read_text("utf-8"), flags=re.M))


@cache
def sections() -> dict[str, str]:
    """Each kind's section of the page by its heading."""
    found = [one for family in _families()[1:] for one in re.split(r"^### ", family, flags=re.M)[1:]]
    return {name: text for name, _, text in (one.partition("\n") for one in found)}


def head() -> str:
    """What the page says of all kinds, before the families."""
    return _families()[0]


def rows(kind: str) -> dict[str, str]:
    """The rows of a kind's section, after those that its family states for all of its kinds."""
    family = next(family for family in _families() if f"\n### {kind}\n" in family)
    return {**_rows(re.split(r"^### ", family, flags=re.M)[0]), **_rows(sections()[kind])}


def _rows(text: str) -> dict[str, str]:
    """The list of the parameters, and the paragraph of the facts; it begins with parameters that the head explains."""
    parameters = re.findall(r"^- (`\w+`): (.*(?:\n  .*)*)", text, re.M)
    (facts,) = re.findall(r"^(?:(?:`\w+`\. ?)+$|(?:`\w+`\. )*\*\*\w+\*\*: ).*(?:\n.+)*", text, re.M) or [""]
    known = re.match(r"(?:`\w+`\. ?)*", facts)
    explained = re.findall(r"`\w+`", known[0]) if known else []
    words = re.split(r"\*\*(\w+)\*\*: ", " ".join(facts.split()))[1:]
    return {
        **dict.fromkeys(explained, "optional"),
        **{name: " ".join(row.split()) for name, row in parameters},
        **{name: row.strip() for name, row in zip(words[::2], words[1::2], strict=True)},
    }
