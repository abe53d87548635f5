"""The effect that a family declares of a kind is that of the code which makes it."""

from __future__ import annotations

import pytest

from chaos.base.registry import registry
from chaos.plan.effect import NONE, effect_of
from tests.kit.every_fault import kinds


@pytest.mark.parametrize("kind", kinds())
def test_the_signal_that_checks_look_for_is_the_one_that_is_sent(kind: str) -> None:
    act, effect = registry("faults").load(kind), effect_of(kind)
    declared = effect.signal if effect.signal is not None else effect.shows
    assert declared in (None, act.signal)
    assert (declared is None and effect.code is None) or act.effect.silences or act.effect.asks_to_end


@pytest.mark.parametrize("kind", kinds())
def test_what_ends_a_process_is_held_against_its_exit(kind: str) -> None:
    act, effect = registry("faults").load(kind), effect_of(kind)
    ends = effect.signal is not None or effect.code is not None or effect.fails
    assert ends == act.effect.ends
    assert (effect.silenced is not None) <= act.effect.suspends


def test_a_kind_that_no_family_has_is_left_to_its_own_proof() -> None:
    assert effect_of("nobody's") == NONE
