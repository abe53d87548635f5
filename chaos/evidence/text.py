"""Text from a job's files, made fit to be shown: it may hold anything."""

from __future__ import annotations

import re

_UNFIT = re.compile("[^\t\n -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def readable(text: str) -> str:
    """Replace every character of ``text`` that a terminal would obey or that XML and UTF-8 cannot hold."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)
