"""No fault kind without a scenario in which it is shown to land, to heal, and to heal after the harness was killed."""

from __future__ import annotations

import pytest

from tests.kit.every_fault import ON_HARDWARE, kinds, shown_by


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_is_shown_by_a_scenario_or_says_why_it_cannot(kind: str) -> None:
    """tests/rehearsal/test_every_fault.py and tests/cluster/test_every_cluster_fault.py run what is found here."""
    if kind in ON_HARDWARE:
        assert kind not in shown_by(), f"{kind} is shown by a scenario: take it out of the table of those that are not"
        pytest.skip(f"nothing here shows {kind}: {ON_HARDWARE[kind]}")
    assert kind in shown_by(), f"no scenario in scenarios/ has a fault of kind {kind}: write the smallest one"


def test_what_nothing_here_can_show_is_registered() -> None:
    assert ON_HARDWARE.keys() <= set(kinds())
