"""The ids of tests. A shell takes them as they are: no quotes, no blanks, no brackets.

``kill-rank:victim=1`` is a cell, ``kill-rank:victim=1+victim=2`` two that are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_PAIR = " | "
_OLD = re.compile(r"(?P<file>.+\.ya?ml)::(?P<scenario>[^\[\]:]+)\[(?P<cells>.+)\]")

_WHOLE = re.compile(r"(.+\.ya?ml)::([^\[\]:]+)")


def item_name(scenario: str, cells: Sequence[str]) -> str:
    """Return the name of a test, of the scenario's name and the names of its cells."""
    names = "+".join(_plain(cell) for cell in cells if cell)
    return f"{scenario}:{names}" if names else scenario


def earlier_name(scenario: str, cells: Sequence[str]) -> str:
    """Return the name that the test had in earlier versions: ``kill-rank[victim=1]``."""
    names = _PAIR.join(cell for cell in cells if cell)
    return f"{scenario}[{names}]" if names else scenario


def with_present_ids(arguments: Iterable[str], directory: Path) -> list[str]:
    """Return arguments of pytest in which ids of earlier versions are those of today.

    The id of a scenario with a matrix, ``kill-rank.yaml::kill-rank``, stands for all of its cells, and becomes the
    file. ``directory`` is that of relative paths.
    """
    present = []
    for argument in arguments:
        if (old := _OLD.fullmatch(argument)) is not None:
            argument = f"{old['file']}::{item_name(old['scenario'], old['cells'].split(_PAIR))}"
        elif (whole := _WHOLE.fullmatch(argument)) is not None and _has_cells(directory / whole[1], whole[2]):
            argument = whole[1]
        present.append(argument)
    return present


def _has_cells(path: Path, scenario: str) -> bool:
    """Return whether this file has a matrix and the scenario's name."""
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError):  # pytest reports it
        return False
    named = rf"(?m)^name:[ \t]*(['\"]?){re.escape(scenario)}\1[ \t]*(#.*)?$"
    return re.search(named, text) is not None and re.search(r"(?m)^matrix:", text) is not None


def unique(names: Iterable[str]) -> Iterator[str]:
    """Yield the names; one that was there before gets a number, as in ``kill-rank:a=x-y.2``."""
    used: set[str] = set()
    for name in names:
        number, chosen = 1, name
        while chosen in used:
            number += 1
            chosen = f"{name}.{number}"
        used.add(chosen)
        yield chosen


def _plain(cell: str) -> str:
    """Return the name of a cell in characters that no shell reads as its own."""
    text = re.sub(r"[\"'\[\]{}]", "", cell)
    text = re.sub(r",\s+", ",", text).replace("#", "%")
    text = re.sub(r"[^\w.,:+@%/=-]+", "-", text)
    return re.sub(r":{2,}", ":", text)
