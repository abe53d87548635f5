"""What every registered platform says of itself: names that are known, and a class that answers to its name."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from chaos.base import registry as registries
from chaos.base.registry import NOUNS, Registry, RegistryError
from chaos.doctor import all_probes
from chaos.platforms.kind import PlatformKind, built_in_kind, platform_kind, platform_kinds, platform_names
from chaos.platforms.nodes import NodePlatform
from chaos.platforms.surfaces import NETWORK, SURFACES
from chaos.scenario.models.scenario import Cluster

EVERY = pytest.mark.parametrize("name", platform_names())


@EVERY
def test_it_is_called_as_it_is_registered_and_so_are_its_nodes(name: str) -> None:
    """An undo step names the platform, and is done by what is registered under that name."""
    kind = platform_kind(name)
    made = kind.make()
    assert kind.name == name
    assert not isinstance(made, NodePlatform) or made.name == name
    assert isinstance(made, NodePlatform) is not kind.traits.one_launcher


@EVERY
def test_whatever_it_names_is_known(name: str) -> None:
    kind = platform_kind(name)
    assert kind.carries <= SURFACES.keys() and kind.shows <= kind.carries
    assert set(kind.unsupported) <= SURFACES.keys() - kind.carries
    assert {*kind.needs, *kind.meets} <= all_probes().keys()
    assert kind.settings is None or kind.settings in Cluster.model_fields
    assert kind.network is None or NETWORK in platform_kind(kind.network).carries - kind.carries or name == "local"


@EVERY
def test_its_example_is_a_part_of_a_scenario(name: str) -> None:
    kind = platform_kind(name)
    fields = {} if kind.settings is None or not kind.example else {kind.settings: kind.example}
    assert Cluster.model_validate({"platform": name, "ranks": 2, **fields}).platform == name
    assert fields or not kind.needs_settings


def test_what_only_some_platforms_carry_has_one_to_be_shown_on() -> None:
    shown = [surface for kind in platform_kinds() for surface in kind.shows]
    assert len(shown) == len(set(shown))
    assert {*shown, *platform_kind("local").carries} == set(SURFACES)


def test_platforms_are_listed_from_this_host_to_other_machines() -> None:
    named = [kind.name for kind in platform_kinds()]
    assert [one for one in named if one in ("local", "docker", "ssh", "kubernetes")] == [
        "local",
        "docker",
        "ssh",
        "kubernetes",
    ]
    assert sorted(named) == sorted(platform_names())


def registered(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = EntryPoint("moon", value, "chaos.platforms")
    known = Registry("chaos.platforms", NOUNS["chaos.platforms"], source=lambda group: [point])
    monkeypatch.setattr(registries, "registry", lambda group: known)


def test_what_is_registered_as_a_platform_and_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, "chaos.machine.job.local:LocalPlatform")
    with pytest.raises(RegistryError, match=r"'moon' is registered as .* is no PlatformKind .*pip install"):
        platform_kind("moon")


MOON = PlatformKind("moon", lambda: platform_kind("local").make(), caller_access=lambda arguments, inventory: arguments)


def test_nothing_foreign_is_done_by_the_ways_of_another_packages_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, f"{__name__}:MOON")
    monkeypatch.setattr(registries, "package_of", lambda group, name: "moon-package 1.0")
    assert platform_kind("moon").name == "moon"
    assert built_in_kind("moon") is None
    monkeypatch.setattr(registries, "package_of", lambda group, name: None)
    assert built_in_kind("moon") is not None
    assert built_in_kind("mars") is None
