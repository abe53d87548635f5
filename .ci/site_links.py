"""A hook of mkdocs: makes pages that GitHub shows fit for a site.

A link to a file outside docs/ becomes its text, since the site has no such file. What a block says behind its language
(``unrun: …``) is for the tests, and goes.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

_LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^][]|\[[^][]*\])*)\]\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"^```(\w*) [^\n]*$", re.MULTILINE)


def inside(source: str, target: str) -> bool:
    """Whether a link from a page of docs/ stays in docs/."""
    depth = 0
    for part in (*PurePosixPath(source).parent.parts, *PurePosixPath(target).parts):
        depth += -1 if part == ".." else 1
        if depth < 0:
            return False
    return True


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the text of each page."""
    source = page.file.src_uri

    def link(match: re.Match[str]) -> str:
        return match[0] if inside(source, match["target"]) else match["text"]

    return _FENCE.sub(r"```\1", _LINK.sub(link, markdown))
