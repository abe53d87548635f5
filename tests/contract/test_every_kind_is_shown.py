"""No fault kind without a scenario in which it is shown to land, to heal, and to heal after the harness was killed."""

from __future__ import annotations

import pytest

from chaos.faults.kind import Asking, Hazardous, Parametrised
from chaos.plan.schedule import EFFECTS
from chaos.registry import registry
from chaos.scenario.model import Scenario
from tests.every_fault import ON_HARDWARE, kinds, shown_by


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_is_shown_by_a_scenario_or_says_why_it_cannot(kind: str) -> None:
    """tests/rehearsal/test_every_fault.py and tests/cluster/test_every_cluster_fault.py run what is found here."""
    if kind in ON_HARDWARE:
        assert kind not in shown_by(), f"{kind} is shown by a scenario: take it out of the table of those that are not"
    else:
        assert kind in shown_by(), f"no scenario in scenarios/ has a fault of kind {kind}: write the smallest one"


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_has_an_effect_that_the_plan_knows_and_parameters_in_words(kind: str) -> None:
    loaded = registry("faults").load(kind)
    assert loaded.effect in EFFECTS
    if isinstance(loaded, Parametrised):
        assert all(one.about for one in loaded.parameters.values())
    if isinstance(loaded, Asking):
        assert loaded.asks.phases is None or loaded.asks.phases


def test_the_reference_lists_all_kinds_that_must_be_allowed_by_name() -> None:
    hazardous = [kind for kind in kinds() if isinstance(registry("faults").load(kind), Hazardous)]
    described = str(Scenario.model_fields["allow"].description)
    assert described.endswith(f"allowed by name: {', '.join(hazardous)}.")
