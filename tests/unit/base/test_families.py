"""A family adds its kinds, proofs and undo actions by one entry point, and takes nothing from other families."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint

import pytest

from chaos.base.families import FAMILIES
from chaos.base.registry import Registry, RegistryError, UnknownName, installed_points
from chaos.evidence.proof import Proof
from chaos.faults.family import Family, Kind, Undo

GROUPS = ("chaos.faults", "chaos.proofs", "chaos.undo", "chaos.rules")
PROOF = Proof("the kernel's word", ("priority",), lambda case: [])
MADE = object()
RULES = object()
FAMILY = Family(
    {"mine": Kind(f"{__name__}:MADE", PROOF)}, {"put-back": Undo(f"{__name__}:MADE")}, rules=f"{__name__}:RULES"
)
OTHER = Family({"mine": Kind(f"{__name__}:OTHER", PROOF)})
TAKES = Family({"kill": Kind(f"{__name__}:MADE", PROOF)})


def registry_of(group: str, *names: str, installed: Sequence[EntryPoint] = ()) -> Registry:
    """A registry with families of this module beside the installed ones."""
    points = [EntryPoint(name.lower(), f"{__name__}:{name}", FAMILIES) for name in names]
    return Registry(group, "fault kind", source=lambda asked: [*installed, *points] if asked == FAMILIES else [])


def test_one_entry_point_registers_kinds_proofs_undo_actions_and_plan_rules() -> None:
    loaded = {group: registry_of(group, "FAMILY") for group in GROUPS}
    assert {group: found.names() for group, found in loaded.items()} == {
        "chaos.faults": ("mine",),
        "chaos.proofs": ("mine",),
        "chaos.undo": ("put-back",),
        "chaos.rules": (f"{__name__}:RULES",),
    }
    assert loaded["chaos.faults"].load("mine") is MADE
    assert loaded["chaos.proofs"].load("mine") is PROOF
    assert loaded["chaos.rules"].load(f"{__name__}:RULES") is RULES
    assert loaded["chaos.undo"].load("put-back") == Undo(f"{__name__}:MADE")


def test_a_family_that_cannot_be_imported_takes_nothing_from_the_others() -> None:
    faults = registry_of("chaos.faults", "NOT_THERE", "FAMILY")
    assert faults.load("mine") is MADE
    with pytest.raises(UnknownName, match="cannot be loaded: the family 'not_there'"):
        faults.load("hers")


@pytest.mark.parametrize("own", [True, False])
def test_what_every_family_is_asked_for_needs_every_family_of_this_project(own: bool) -> None:
    points = installed_points(FAMILIES)
    broken = EntryPoint("broken", f"{__name__}:NOT_THERE", FAMILIES)
    if own:
        vars(broken)["dist"] = points[0].dist
    rules = Registry("chaos.rules", "plan rules", source=lambda group: [*points, broken] if group == FAMILIES else [])
    assert rules.names()
    if own:
        with pytest.raises(RegistryError, match=r"the family 'broken' .*NOT_THERE"):
            rules.whole_names()
    else:
        assert rules.whole_names() == rules.names()


def test_two_families_cannot_have_one_kind() -> None:
    with pytest.raises(RegistryError, match="two packages register the fault kind 'mine'"):
        registry_of("chaos.faults", "FAMILY", "OTHER").names()


def test_nobody_takes_a_kind_of_this_project() -> None:
    proofs = registry_of("chaos.proofs", "TAKES", installed=installed_points(FAMILIES))
    assert proofs.load("kill") is not PROOF
    assert proofs.built_in.keys() >= {"kill", "disk-full"}
    assert "mine" not in proofs.built_in
