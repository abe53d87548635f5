"""The generators of a rank are seeded at its start where the scenario says so, and in no other process."""

from __future__ import annotations

import random
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from chaos.agent.after_import import AfterImport
from chaos.agent.configuration import Configuration, Place
from chaos.agent.start import Agent
from chaos.agent.torch.seeds import SETTING, install

RANK, LAUNCHER = Place("rank", 1, 2), Place("other", None, None)


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The seeds that the generators get; numpy and PyTorch are stand-ins that are imported already."""
    given: list[tuple[str, int]] = []
    numpy: Any = ModuleType("numpy")
    numpy.random = SimpleNamespace(seed=lambda seed: given.append(("numpy", seed)))
    torch: Any = ModuleType("torch")
    torch.manual_seed = lambda seed: given.append(("torch", seed))
    monkeypatch.setattr(random, "seed", lambda seed: given.append(("python", seed)))
    for module in (numpy, torch):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return given


def start(place: Place, **settings: Any) -> None:
    configuration = Configuration(run="run-1", attempt="train", history="", settings=settings)
    install(Agent(configuration, place, AfterImport()))


def test_all_three_generators_get_the_seed(seeds: list[tuple[str, int]]) -> None:
    start(RANK, **{SETTING: (1 << 32) + 5})
    assert seeds == [("python", (1 << 32) + 5), ("numpy", 5), ("torch", (1 << 32) + 5)]


@pytest.mark.parametrize(("place", "settings"), [(LAUNCHER, {SETTING: 1}), (RANK, {SETTING: None}), (RANK, {})])
def test_nothing_is_seeded_without_the_key_or_in_the_launcher(
    seeds: list[tuple[str, int]], place: Place, settings: dict[str, Any]
) -> None:
    start(place, **settings)
    assert seeds == []
