"""A fault kind is asked for by its name, and is one: whatever else a package registers is refused."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from chaos.base import registry as registries
from chaos.base.registry import NOUNS, Registry, RegistryError, UnknownName
from chaos.faults.kind import fault_kind
from chaos.faults.signals import kill


def test_a_kind_is_found_by_its_name() -> None:
    assert fault_kind("kill") is kill.KIND
    with pytest.raises(UnknownName, match=r"'kil'.*did you mean 'kill'"):
        fault_kind("kil")


@pytest.mark.parametrize("target", ["Kill", "KIND.name"])
def test_what_is_registered_as_one_and_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    point = EntryPoint("odd", f"chaos.faults.signals.kill:{target}", "chaos.faults")
    known = Registry("chaos.faults", NOUNS["chaos.faults"], source=lambda group: [point])
    monkeypatch.setattr(registries, "registry", lambda group: known)
    with pytest.raises(RegistryError, match=r"'odd' is registered as .* does not derive from .*FaultKind, .*extending"):
        fault_kind("odd")
