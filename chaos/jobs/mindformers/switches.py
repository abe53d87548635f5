"""MS_ENABLE_TFT as MindFormers reads it: by looking for parts of its text."""

from __future__ import annotations

from typing import get_args

from chaos.scenario.terms import Mechanism

SWITCHES = "MS_ENABLE_TFT"
"""The environment variable that switches mechanisms on."""


def mechanisms(value: str) -> tuple[Mechanism, ...]:
    """The mechanisms that this value switches on: those whose name is followed by ``:1`` without a blank.

    Source: MindFormers, mindformers/version_control.py (2.1): it looks for ``TTP:1`` and the like in the text.
    """
    return tuple(name for name in get_args(Mechanism) if f"{name}:1" in value)
