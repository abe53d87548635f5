"""The effect of a planned fault, as the family of its kind declares it."""

from __future__ import annotations

from typing import cast

from chaos.base.registry import registry
from chaos.plan.effect import NONE, Effect


def effect_of(kind: str) -> Effect:
    """The effect of a kind; none of one that no family here has, which its own proof alone can judge."""
    kinds = registry("kinds")
    return cast(Effect, kinds.load(kind).effect) if kind in kinds.points else NONE
