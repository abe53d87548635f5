"""A fault kind is asked for by its name, and is one: whatever else a package registers is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from chaos.base import registry as registries
from chaos.base.registry import NOUNS, Registry, RegistryError, UnknownName
from chaos.faults.behaviours import Aimed
from chaos.faults.kind import FaultKind, Victim
from chaos.faults.registered import aimed_kind, fault_kind, kind_in_running_job
from chaos.faults.signals import kill
from chaos.history.ledger import UndoStep
from chaos.machine.job.protocol import Job
from chaos.machine.running.running import JobProcess
from chaos.plan.job_effect import NONE, STORAGE_FULL, JobEffect, may_be_planned


def test_a_kind_is_found_by_its_name() -> None:
    assert fault_kind("kill") is kill.KIND
    with pytest.raises(UnknownName, match=r"'kil'.*did you mean 'kill'"):
        fault_kind("kil")


@pytest.mark.parametrize("target", ["Kill", "KIND.name"])
def test_what_is_registered_as_one_and_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    point = EntryPoint("odd", f"chaos.faults.signals.kill:{target}", "chaos.faults")
    known = Registry("chaos.faults", NOUNS["chaos.faults"], source=lambda group: [point])
    monkeypatch.setattr(registries, "registry", lambda group: known)
    with pytest.raises(RegistryError, match=r"'odd' is registered as .* must derive from .*FaultKind .*extending"):
        fault_kind("odd")


class Prepares(FaultKind):
    """Has the methods of a kind that prepares a job, and does not say that it is one."""

    name = "odd"
    effect = NONE

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
    with pytest.raises(RegistryError, match=r"must derive from chaos\.faults\.behaviours\.Preparing"):
        fault_kind("odd")


class Named(Prepares):
    """Names its effect, as packages do."""

    effect = "storage full"  # type: ignore[assignment]


class Mistaken(Prepares):
    """Names an effect that nothing here has."""

    effect = "wrong values"  # type: ignore[assignment]


def test_a_built_in_effect_may_be_named() -> None:
    kinds: list[FaultKind] = [Named(), Mistaken()]
    assert [kind.effect for kind in kinds] == [STORAGE_FULL, JobEffect("wrong values")]
    assert [may_be_planned(kind.effect) for kind in kinds] == [True, False]


class Former(Aimed, Prepares):
    """Has the names of an earlier release."""

    means = "process"
    said_by = "the file itself"

    def aimed(self, ranks: Sequence[JobProcess], parameters: Mapping[str, Any]) -> FaultKind:
        return kill.KIND

    def shown(self) -> list[dict[str, Any]]:
        return [{"file": "net-1_4.ckpt"}]


def test_a_kind_with_former_names_of_attributes_is_read_as_before() -> None:
    kind = Former()  # type: ignore[abstract]
    assert (kind.surface, kind.evidence_source) == ("process", "the file itself")
    assert kind.aim_at([], {}) is kill.KIND
    assert kind.aim_records() == [{"file": "net-1_4.ckpt"}]


class Running(Prepares):
    """Is another kind in a running job, which has the same flaw."""

    def in_running_job(self) -> FaultKind | None:
        return KIND


class Finds(Aimed, Prepares):
    """Finds what it hits, and is another kind with the same flaw then."""

    def aim_at(self, ranks: Sequence[JobProcess], parameters: Mapping[str, Any]) -> FaultKind:
        return KIND

    def aim_records(self) -> list[dict[str, Any]]:
        return []


def test_what_a_kind_becomes_in_a_running_job_is_looked_at_too() -> None:
    flaw = r"'odd' is in a running job, Prepares, does not derive from chaos\.faults\.behaviours\.Preparing"
    with pytest.raises(RegistryError, match=flaw):
        kind_in_running_job(Running())
    with pytest.raises(RegistryError, match=flaw):
        aimed_kind(Finds(), [], {})
    assert kind_in_running_job(kill.KIND) is kill.KIND
    assert aimed_kind(kill.KIND, [], {}) is kill.KIND
