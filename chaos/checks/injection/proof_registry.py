"""The proof of every fault kind, as its family registers it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chaos.base.registry import Registry, RegistryError, UnknownName, package_of, registry
from chaos.evidence.doubt import Doubt
from chaos.evidence.injection.unresponsive import silence_doubts
from chaos.evidence.proof import Case, Proof, lacking_evidence
from chaos.faults.checkpoints.proof_damage import damage_doubts
from chaos.faults.checkpoints.proof_lost import lost_files_doubts

GROUP = "chaos.proofs"
"""Registry of proofs, by the names of their kinds. A package may add to it without a family, too."""


class NoProof(Exception):
    """Nothing here can prove a fault of this kind. The text says what is missing."""


def effect_doubts(case: Case) -> Iterator[Doubt]:
    """Yield the reasons to doubt a fault by its effect, whatever its kind.

    It is asked of the kinds of other packages beside their own proof.
    """
    yield from lost_files_doubts(case.fault, case.landing, case.evidence)
    yield from damage_doubts(case.plan, case.history, case.fault, case.landing, case.evidence)
    yield from silence_doubts(case.history, case.fault, case.landing, case.evidence, case.injection)


def proof_of(kind: str, package: str = "", registered: Registry | None = None) -> Proof:
    """Return the proof of a fault kind. No other package can take the name of a kind of this project.

    ``package`` is the package that the run had the kind from, where the run says so. ``registered`` stands in for the
    installed proofs. Raises NoProof without a usable proof.
    """
    proofs = registry(GROUP) if registered is None else registered
    try:
        proof = proofs.load(kind)
    except UnknownName:
        raise NoProof(_nothing_registered(kind, package)) from None
    except RegistryError as error:
        raise NoProof(str(error)) from error
    except Exception as error:  # any error of another package's module at its import
        raise NoProof(f"the proof of {kind} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(proof, Proof):
        raise NoProof(f"the object registered as the proof of {kind} is no chaos.evidence.proof.Proof")
    return proof


def is_built_in(kind: str) -> bool:
    """Return whether a family of this project has the kind."""
    return kind in registry(GROUP).built_in


def why_unproven(kind: str, evidence: Mapping[str, object]) -> str | None:
    """Return why evidence proves nothing by itself, where no history is judged; None where it does.

    There is no proof, or the evidence lacks a field that the proof needs.
    """
    try:
        proof = proof_of(kind)
    except NoProof as error:
        return str(error)
    lacking = lacking_evidence(proof, evidence)
    return None if lacking is None else f"its evidence {lacking}"


def _nothing_registered(kind: str, package: str) -> str:
    try:
        here = package_of("faults", kind)
    except RegistryError:
        here = None
    if here is not None:
        where = f"({GROUP}, docs/guides/extending.md in the repository)"
        return f"no proof of the fault kind {kind} is registered: {here} must register one {where}"
    missing = (
        f"the run had it from {package}, which is not installed here" if package else "its package is not installed"
    )
    return f"no proof of the fault kind {kind} is registered here: {missing}; install it and judge the run again"
