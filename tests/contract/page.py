"""The sections of docs/reference/faults.md."""

from __future__ import annotations

import re
from functools import cache

from tests.documents.blocks import ROOT


@cache
def sections() -> dict[str, str]:
    """Each section of the page by its heading."""
    _, *found = re.split(r"^## ", (ROOT / "docs" / "reference" / "faults.md").read_text("utf-8"), flags=re.M)
    return {name: text for name, _, text in (one.partition("\n") for one in found)}


def head() -> str:
    """What the page says of all kinds, before the sections."""
    return (ROOT / "docs" / "reference" / "faults.md").read_text("utf-8").partition("\n## ")[0]


def rows(kind: str) -> dict[str, str]:
    """The table of a kind's section."""
    return dict(re.findall(r"^\| (\S.*?) \| (\S.*) \|$", sections()[kind], re.M))
