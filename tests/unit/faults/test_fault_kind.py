"""A fault kind is asked for by its name, and is one: whatever else a package registers is refused."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from chaos.base import registry as registries
from chaos.base.registry import NOUNS, Registry, RegistryError, UnknownName
from chaos.faults.kind import FaultKind, Victim
from chaos.faults.registered import fault_kind
from chaos.faults.signals import kill
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job


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


class Prepares(FaultKind):
    """Has the methods of a kind that prepares a job, and does not say that it is one."""

    name = "odd"
    effect = "none"

    def undo_steps(self, fault: str, victims: list[Victim]) -> list[UndoStep]:
        return []

    def inject(self, job: Job, victim: Victim) -> None:
        pass

    def evidence(self, job: Job, victim: Victim) -> dict[str, Any] | None:
        return None

    def prepare_steps(self, fault: str, storage: Path) -> list[UndoStep]:
        return []

    def prepare(self, storage: Path) -> None:
        pass


KIND = Prepares()


def test_a_kind_that_would_never_be_asked_for_what_it_does_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("odd", f"{__name__}:KIND", "chaos.faults")
    known = Registry("chaos.faults", NOUNS["chaos.faults"], source=lambda group: [point])
    monkeypatch.setattr(registries, "registry", lambda group: known)
    with pytest.raises(RegistryError, match=r"does not derive from chaos\.faults\.behaviours\.Preparing"):
        fault_kind("odd")
