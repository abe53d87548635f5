"""Registries know names without importing, and say what to do when something is missing."""

from __future__ import annotations

import sys
from importlib import metadata
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from chaos.base.registry import NOUNS, Registry, RegistryError, UnknownName, installed_points, registry


def make(*values: str, installed: bool = True) -> Registry:
    """A registry of jobs given as name=value."""
    points = [EntryPoint(name, value, "chaos.jobs") for name, value in (pair.split("=", 1) for pair in values)]
    return Registry("chaos.jobs", "job kind", source=lambda group: points, installed=lambda: installed)


def test_names_are_known_without_an_import() -> None:
    sys.modules.pop("colorsys", None)
    jobs = make("b=colorsys:rgb_to_hsv", "a=no_such_module:x")
    assert jobs.names() == ("a", "b")
    assert "colorsys" not in sys.modules
    assert callable(jobs.load("b"))


def test_an_unknown_name_gets_the_near_miss_or_the_list() -> None:
    jobs = make("rehearsal=m:x", "msrun=m:y")
    with pytest.raises(UnknownName, match=r"unknown job kind 'rehersal'; did you mean 'rehearsal'\?"):
        jobs.load("rehersal")
    with pytest.raises(UnknownName, match="registered: msrun, rehearsal"):
        jobs.load("zzz")


@pytest.mark.parametrize("value", ["no_such_module:x", "math:no_such_object"])
def test_what_cannot_be_loaded_is_named_with_a_remedy(value: str) -> None:
    with pytest.raises(RegistryError, match=r"'broken' is registered as .*cannot be loaded.*pip install -e"):
        make(f"broken={value}").load("broken")


@pytest.mark.parametrize(("installed", "text"), [(True, "metadata is stale"), (False, "is not installed")])
def test_an_empty_registry_says_what_to_do(installed: bool, text: str) -> None:
    jobs = make(installed=installed)
    with pytest.raises(RegistryError, match=f"{text}.*pip install -e"):
        jobs.some_names()
    with pytest.raises(UnknownName, match=text):
        jobs.load("rehearsal")


def test_two_packages_cannot_claim_one_name() -> None:
    with pytest.raises(RegistryError, match="two packages register the job kind 'a': m:x and n:y"):
        make("a=m:x", "a=n:y").names()
    assert make("a=m:x", "a=m:x").names() == ("a",)


def test_a_group_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(RegistryError, match=r"no entry point group 'chaos\.fault'"):
        registry("fault")


@pytest.mark.parametrize("group", NOUNS)
def test_everything_that_is_registered_can_be_loaded(group: str) -> None:
    members = registry(group)
    assert all(members.load(name) is not None for name in members.names())


def test_what_a_build_left_beside_the_sources_does_not_hide_what_is_installed(tmp_path: Path) -> None:
    def found(folder: str, file: str, module: str) -> Distribution:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_text("Metadata-Version: 2.1\nName: chaos-ascend\nVersion: 1\n")
        (tmp_path / folder / "entry_points.txt").write_text(f"[chaos.jobs]\nrehearsal = {module}:KIND\n")
        return Distribution.at(tmp_path / folder)

    stale = found("chaos_ascend.egg-info", "PKG-INFO", "old")
    fresh = found("chaos_ascend-1.dist-info", "METADATA", "new")
    assert [point.value for point in installed_points("chaos.jobs", [stale, fresh])] == ["new:KIND"]
    assert [point.value for point in installed_points("chaos.jobs", [stale])] == ["old:KIND"]
    assert installed_points("chaos.faults", [stale, fresh]) == []
    (tmp_path / "chaos_ascend.egg-info" / "entry_points.txt").write_text("[chaos.faults]\nabort = old:KIND\n")
    assert installed_points("chaos.faults", [stale, fresh]) == []  # the installed one has no such group any more
    assert [point.value for point in installed_points("chaos.faults", [stale])] == ["old:KIND"]


def test_a_retired_attribute_of_another_package_is_refused_with_its_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("chaos_other")
    monkeypatch.setitem(sys.modules, "chaos_other", module)
    monkeypatch.setattr(module, "KIND", SimpleNamespace(name="old", seen_at_once=True), raising=False)
    point = EntryPoint("old", "chaos_other:KIND", "chaos.faults")
    kinds = Registry("chaos.faults", "fault kind", source=lambda group: [point] if group == "chaos.faults" else [])
    with pytest.raises(RegistryError, match=r"'old' of an unknown package .*its attribute seen_at_once is retired"):
        kinds.load("old")
    monkeypatch.setattr(module, "KIND", SimpleNamespace(name="old", shows_when_let_go=False), raising=False)
    assert kinds.load("old") is module.KIND


def test_a_retired_field_of_another_package_is_refused_with_its_new_name(tmp_path: Path) -> None:
    (tmp_path / "chaos_earlier.py").write_text(
        "from chaos.platforms.kind import PlatformKind\n"
        "KIND = PlatformKind(name='earlier', make=object, order=9, why_not={})\n"
    )
    information = tmp_path / "chaos_earlier-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: chaos-earlier\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[chaos.platforms]\nearlier = chaos_earlier:KIND\n")
    (distribution,) = metadata.distributions(path=[str(tmp_path)])
    platforms = Registry(
        "chaos.platforms", "platform", source=lambda group: distribution.entry_points.select(group=group)
    )
    sys.path.insert(0, str(tmp_path))
    try:
        with pytest.raises(RegistryError, match=r"package chaos-earlier .* why_not is retired: set unsupported"):
            platforms.load("earlier")
    finally:
        sys.path.remove(str(tmp_path))
