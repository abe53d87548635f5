"""Every registered fault kind has a proof: what it leaves proves it, and without proof or evidence it is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from chaos.base.registry import registry
from chaos.checks.injection.proof_registry import proof_of
from chaos.evidence.proof import OF_THE_HARNESS
from tests.contract.evidence import missing
from tests.contract.proven_kinds import SAMPLES, findings, not_passed
from tests.kit.every_fault import kinds


@pytest.mark.parametrize("kind", kinds())
def test_its_sample_is_proven_and_told_by_its_own_words(kind: str) -> None:
    assert kind in SAMPLES, f"{kind} has no sample: say in {SAMPLES.__module__} what a landed fault of it leaves"
    found = findings(kind)
    assert not_passed(found) == []
    assert any(f"proven by {proof_of(kind).words}, barrier and process identity" in finding.seen for finding in found)


@pytest.mark.parametrize("kind", kinds())
def test_without_a_proof_it_is_unknown(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proofs = registry("chaos.proofs")
    monkeypatch.delitem(proofs.built_in, kind)
    monkeypatch.delitem(proofs.points, kind)
    found = not_passed(findings(kind))
    assert {finding.verdict for finding in found} == {"unknown"}
    assert any(f"no proof of the fault kind {kind} is registered" in finding.seen for finding in found)


@pytest.mark.parametrize("kind", kinds())
def test_evidence_that_says_nothing_proves_nothing(kind: str) -> None:
    def emptied(evidence: dict[str, Any]) -> None:
        for name in set(evidence) - OF_THE_HARNESS:
            del evidence[name]

    found = not_passed(findings(kind, emptied))
    assert {finding.verdict for finding in found} == {"unknown"}
    assert any("says nothing about what was done to it" in finding.seen for finding in found)
    assert not_passed(findings(kind, lambda evidence: evidence.clear()))


@pytest.mark.parametrize("kind", kinds())
def test_without_a_field_that_its_proof_names_it_is_unknown(kind: str) -> None:
    said = {field: not_passed(findings(kind, missing(field))) for field in proof_of(kind).fields}
    assert {field for field, doubts in said.items() if {finding.verdict for finding in doubts} != {"unknown"}} == set()


def test_nothing_is_proven_that_is_no_registered_kind() -> None:
    """A proof or a sample that stays behind when its kind goes is nobody's."""
    assert kinds() == sorted(registry("chaos.proofs").built_in) == sorted(SAMPLES)


@pytest.mark.parametrize("words", ["exit status", "signal"])
def test_where_nothing_exited_no_exit_status_is_told(words: str) -> None:
    for kind in ("suspend", "lose-checkpoint"):
        assert words not in proof_of(kind).words
