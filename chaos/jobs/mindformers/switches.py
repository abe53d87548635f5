"""MS_ENABLE_TFT: how MindFormers and MindSpore read it, and spellings that the two do not read alike.

Both look for ``TTP:1`` and the like anywhere in the text; MindSpore also splits it at the commas when it is imported.
Sources: MindFormers, mindformers/version_control.py (1.5 to 2.1); MindSpore 2.10, mindspore/utils/utils.py and
mindspore/train/callback/_train_fault_tolerance.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from chaos.scenario.errors import quote, suggest
from chaos.scenario.terms import Mechanism

SWITCHES = "MS_ENABLE_TFT"
"""The environment variable that switches mechanisms on."""

_EXAMPLE = 'write it like "{TTP:1,UCE:1}"'


def mechanisms(value: str) -> tuple[Mechanism, ...]:
    """The mechanisms that this value switches on: those whose name is followed by ``:1`` without a blank."""
    return tuple(name for name in get_args(Mechanism) if f"{name}:1" in value)


def misread(value: str) -> Iterator[tuple[str, str]]:
    """What is not read as it looks: a message and a hint for each part that is neither ``NAME:0`` nor ``NAME:1``."""
    for part in value.replace("{", "").replace("}", "").strip().split(","):
        if part == "":
            continue
        name, colon, state = part.strip().partition(":")
        known = name.strip()
        if not colon:
            yield f"{quote(part)} has no value, at which MindSpore ends while it is imported (2.10)", _EXAMPLE
        elif ":" in state:
            yield (
                f"{quote(part.strip())} lacks a comma: it is one switch to MindSpore's parser and two to others",
                _EXAMPLE,
            )
        elif known == "ATO":
            yield "ATO is not planned by this version of chaos", "leave it out"
        elif known not in get_args(Mechanism):
            yield f"there is no mechanism {quote(known)}", suggest(known, get_args(Mechanism))
        elif name != known or state != state.strip():
            if state.strip().startswith("1"):
                message = f"{quote(part.strip())} has a blank at the colon: MindFormers and MindSpore look for "
                yield f"{message}'{known}:1' and find it not, so {known} is off", _EXAMPLE
        else:
            yield from _state(known, state)


def _state(name: str, state: str) -> Iterator[tuple[str, str]]:
    if state in ("0", "1"):
        return
    if name == "TRE" and state == "2":
        yield "TRE:2 (rollback to a snapshot) is not planned by this version of chaos", "use TRE:1"
    elif state.startswith("1"):
        message = f"{quote(f'{name}:{state}')} switches {name} on: MindFormers and MindSpore look for '{name}:1' in it"
        yield message, f"write {name}:1, or {name}:0"
    else:
        yield f"{quote(f'{name}:{state}')} does not switch {name} on", f"write {name}:1, or {name}:0"
