"""A kind of another package is proven by the proof that it registers, and by nothing else."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from chaos.base.registry import NOUNS, Registry, installed_points
from chaos.checks.injection.proof_registry import NoProof, proof_of, why_unproven
from chaos.evidence.proof import Case, Proof
from tests.contract.proven_kinds import Sample, findings, not_passed

MINE = Sample({"signal": None, "priority": 19})


def _low(case: Case) -> list[tuple[str, tuple[str, ...]]]:
    seen = case.evidence["priority"]
    return [] if seen == 19 else [(f"its priority is {seen}", (case.landing.source,))]


PRIORITY = Proof("the kernel's word on its priority", ("priority",), _low)
NO_PROOF = object()


def _broken(case: Case) -> list[tuple[str, tuple[str, ...]]]:
    raise KeyError(case.fault.kind)


BROKEN = Proof("nothing that works", ("priority",), _broken)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Register the proof of the kind ``mine``, by the name of an object of this module; None: no proof."""

    def install(name: str | None) -> None:
        points = [] if name is None else [EntryPoint("mine", f"{__name__}:{name}", "chaos.proofs")]
        proofs = Registry("chaos.proofs", NOUNS["chaos.proofs"], source=lambda group: points)
        monkeypatch.setattr("chaos.checks.injection.proof_registry.registry", lambda group: proofs)

    return install


def test_a_kind_of_another_package_is_proven_by_the_proof_that_it_registers(installed: Any) -> None:
    installed("PRIORITY")
    found = findings("mine", sample=MINE)
    assert not_passed(found) == []
    assert any("proven by the kernel's word on its priority, barrier and process" in finding.seen for finding in found)
    for spoil, doubt in (
        (lambda evidence: evidence.update(priority=0), "its priority is 0"),
        (lambda evidence: evidence.pop("priority"), 'lacks the field "priority"'),
    ):
        said = not_passed(findings("mine", spoil, MINE))
        assert {finding.verdict for finding in said} == {"unknown"}
        assert any(doubt in finding.seen or "says nothing" in finding.seen for finding in said)


@pytest.mark.parametrize(
    ("name", "doubt"),
    [
        (None, "no proof of the fault kind mine is registered here"),
        ("NO_PROOF", "is no chaos.evidence.proof.Proof"),
        ("NOT_THERE", "cannot be loaded"),
        ("BROKEN", "the proof of mine crashed: KeyError: 'mine'"),
    ],
)
def test_a_kind_without_a_proof_that_works_is_never_proven(name: str | None, doubt: str, installed: Any) -> None:
    installed(name)
    said = not_passed(findings("mine", sample=MINE))
    assert {finding.verdict for finding in said} == {"unknown"}
    assert any(doubt in finding.seen for finding in said)


def test_the_package_that_is_missing_is_named() -> None:
    nothing = Registry("chaos.proofs", NOUNS["chaos.proofs"], source=lambda group: [])
    with pytest.raises(NoProof, match=r"the run had it from chaos-example 1\.0, which is not installed here"):
        proof_of("mine", "chaos-example 1.0", nothing)


def test_nobody_takes_the_proof_of_a_built_in_kind() -> None:
    def source(group: str) -> list[EntryPoint]:
        taken = [EntryPoint("kill", f"{__name__}:PRIORITY", group)] if group == "chaos.proofs" else []
        return [*installed_points(group), *taken]

    proofs = Registry("chaos.proofs", NOUNS["chaos.proofs"], source=source)
    assert proof_of("kill", registered=proofs) is proof_of("kill")


def test_where_no_history_is_judged_evidence_needs_the_fields_of_a_proof_too() -> None:
    assert why_unproven("cpu-quota", {"signal": None, "group": "chaos-x", "throttled": 3}) is None
    assert why_unproven("cpu-quota", {"signal": None, "throttled": 3}) == 'its evidence lacks the field "group"'
    assert why_unproven("cpu-quota", {}) == "its evidence says nothing about what was done to it"
    assert "no proof of the fault kind mine" in str(why_unproven("mine", {"priority": 19}))


@pytest.mark.parametrize(("words", "fields"), [("", ("priority",)), ("x", ()), ("x", ("rank", "pid", "barrier"))])
def test_a_proof_that_would_accept_anything_cannot_be_made(words: str, fields: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="the evidence that it needs"):
        Proof(words, fields, lambda case: [])
