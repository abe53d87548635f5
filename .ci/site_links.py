"""Hooks of mkdocs: make pages that GitHub shows fit for a site.

The menu is the index of docs/README.md: its headings, and the pages of their lists in their order.

A link to a file outside docs/ becomes its text, since the site has no such file. What a block says behind its language
(``unrun: …``) is for the tests, and goes.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

_LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^][]|\[[^][]*\])*)\]\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
_PART = re.compile(r"^## (?P<title>.+)\n(?P<rows>(?:(?!^## ).*\n?)*)", re.MULTILINE)
_ROW = re.compile(r"^- \[[^]]+\]\((?P<page>[\w./-]+)\):", re.MULTILINE)
_FENCE = re.compile(r"^```(\w*) [^\n]*$", re.MULTILINE)


def inside(source: str, target: str) -> bool:
    """Whether a link from a page of docs/ stays in docs/."""
    depth = 0
    for part in (*PurePosixPath(source).parent.parts, *PurePosixPath(target).parts):
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True


def menu(docs: Path) -> list[Any]:
    """The parts of the index with their pages, then the pages in Chinese."""
    parts = _PART.finditer((docs / "README.md").read_text("utf-8"))
    chinese = [path.relative_to(docs).as_posix() for path in sorted((docs / "zh").glob("*.md"))]
    return ["README.md", *({part["title"]: _ROW.findall(part["rows"])} for part in parts), {"中文": chinese}]


def on_config(config: Any) -> None:
    """Called by mkdocs with its configuration, before it looks for pages."""
    config["nav"] = menu(Path(config["docs_dir"]))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the text of each page."""
    source = page.file.src_uri

    def link(match: re.Match[str]) -> str:
        return match[0] if inside(source, match["target"]) else match["text"]

    return _FENCE.sub(r"```\1", _LINK.sub(link, markdown))
