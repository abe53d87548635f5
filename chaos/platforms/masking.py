"""Values on a command line that nobody should read in a report: what follows a word such as token or password."""

from __future__ import annotations

import re
from collections.abc import Sequence

MASK = "***"

_SECRET = re.compile(
    r"(?:^|[-_.\W])(?:[a-z]*token|secret|passw(?:or)?d|pwd|pass(?:phrase)?|[a-z]*key|credentials?|auth)$",
    re.IGNORECASE,
)
_MAX_NAME = 200


def masked(arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments with the values of secret options replaced: ``--hub_token=x``, ``--password x``, ``API_KEY=x``."""
    shown: list[str] = []
    follows = False
    for argument in arguments:
        name, equals, _ = argument[:_MAX_NAME].partition("=")
        if follows and not argument.startswith("-"):
            shown.append(MASK)
            follows = False
            continue
        secret = _SECRET.search(name) is not None
        shown.append(f"{name}={MASK}" if secret and equals else argument)
        follows = secret and not equals and argument.startswith("-")
    return tuple(shown)
