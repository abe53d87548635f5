"""No field of a kind's evidence can be missing or another without a doubt, but for those that are named here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

import pytest

from chaos.checks.injection.proof_registry import proof_of
from chaos.evidence.finding import Finding
from tests.contract.evidence import Mutate, changed, fields, missing, retyped
from tests.contract.proven_kinds import SAMPLES, Sample, findings, not_passed
from tests.kit.every_fault import kinds

TAKE_PODS = ("node-drain", "pod-delete", "pod-evict")
ON_CARDS = ("device-reset", "npu-link-down")
MESH = ("pod-dns-gone", "pod-io-delay", "pod-network-delay", "pod-network-loss", "pod-network-partition")
MOUNTED = tuple(kind for kind in kinds() if proof_of(kind).fields == ("refused", "mount"))
ADDRESSES = ("source", "source_port", "target", "interface", "inode")


def _of(kinds: Iterable[str], *names: str) -> set[tuple[str, str]]:
    return {(kind, name) for kind in kinds for name in names}


DESCRIPTIVE = {
    "It says more to a reader than the proof needs.": {
        *_of(TAKE_PODS, "pod.name"),
        *_of(MESH, "object"),
        ("truncate-checkpoint", "bytes"),
        ("truncate-checkpoint", "bytes.0"),
        ("truncate-checkpoint", "bytes.1"),
        ("device-reset", "answer.said"),
        ("dns-gone", "name"),
        ("dns-gone", "address"),
        ("network-delay", "echoes"),
        ("network-rate", "overlimits"),
        ("terminate", "became"),
    },
    "It names the card, of which the harness has one record alone.": _of(ON_CARDS, "device.npu"),
    "The cookies and the port tell the connection.": _of(
        ("connection-reset",), *(f"reset.0.{name}" for name in ADDRESSES)
    ),
    "Nothing else tells on which cores the rank is.": _of(("cpu-load",), "cores.0", "cores.1"),
}
"""Fields, by reason, that a fault is proven without."""

ANY_VALUE = {
    "It must be there, and names what the kernel's refusal is about.": {
        *_of(MOUNTED, "mount"),
        ("no-permission", "directory"),
    },
    "It must be there; nobody else has recorded it.": {
        *_of(TAKE_PODS, "told_by", "by"),
        *_of(ON_CARDS, "device"),
        ("connection-reset", "reset.0.cookie"),
        ("connection-reset", "reset.0.other cookie"),
        ("cpu-load", "cores"),
        ("dns-gone", "before"),
        ("dns-gone", "before.0"),
        ("dns-gone", "error"),
        ("node-reboot", "boot.after"),
    },
    "It must be there; the digests tell which file it was.": {
        ("damage-record", "file"),
        ("rename-checkpoint", "renamed"),
    },
}
"""Fields, by reason, that must be there, and may have another value."""

OTHERS = {("fd-limit", "left"): 17}
"""A wrong value where the one that is drawn would be right."""

SPOILT: dict[str, Callable[[str, str], Mutate]] = {
    "missing": lambda kind, field: missing(field),
    "another value": lambda kind, field: changed(field, OTHERS.get((kind, field))),
    "another type": lambda kind, field: retyped(field),
}


@cache
def doubts(kind: str, field: str) -> dict[str, list[Finding]]:
    """What is said of the fault, by how the field is spoilt; nothing where it is proven all the same."""
    return {how: not_passed(findings(kind, spoil(kind, field))) for how, spoil in SPOILT.items()}


def without_doubt(kind: str, field: str) -> set[str]:
    """How the field can be spoilt and the fault is proven all the same."""
    return {how for how, said in doubts(kind, field).items() if not said}


def crashed(kind: str, field: str) -> list[str]:
    """What the proof says where it fails at the spoilt field instead of doubting it."""
    return [finding.seen for said in doubts(kind, field).values() for finding in said if "crashed" in finding.seen]


def of_kind(kind: str, named: dict[str, set[tuple[str, str]]]) -> set[str]:
    return {field for pairs in named.values() for name, field in pairs if name == kind}


@pytest.mark.parametrize("kind", kinds())
def test_no_field_is_missing_or_another_without_a_doubt_but_those_that_are_named(kind: str) -> None:
    passed = {field: spoilt for field in fields(SAMPLES[kind].evidence) if (spoilt := without_doubt(kind, field))}
    assert {field for field, spoilt in passed.items() if "missing" in spoilt} == of_kind(kind, DESCRIPTIVE)
    assert {field for field, spoilt in passed.items() if "missing" not in spoilt} == of_kind(kind, ANY_VALUE)


@pytest.mark.parametrize("kind", kinds())
def test_a_proof_doubts_what_it_does_not_understand_and_goes_on(kind: str) -> None:
    assert {field: said for field in fields(SAMPLES[kind].evidence) if (said := crashed(kind, field))} == {}


def test_a_signal_that_nobody_has_sent_is_a_contradiction() -> None:
    silent = [kind for kind in kinds() if SAMPLES[kind].evidence["signal"] is None]
    passed = [kind for kind in silent if not not_passed(findings(kind, changed("signal", 7)))]
    assert passed == []


CONTEXT = {
    "It is looked at where the fault has an end of its own; its proof is the silence.": {
        *_of(("node-disconnect", "node-pause", "suspend"), "fault.ending"),
    },
    "It says that the fault was over, of which other records tell.": {
        ("pause", "pause.exit"),
        ("slow-rank", "step.end"),
    },
}
"""Records, by reason, that a fault is proven without."""


def records(sample: Sample) -> set[str]:
    """The events by which a sample's fault is proven, beside its landing."""
    own = {name for name, _, _ in sample.records} | {event.event for event in sample.others}
    kept = {"rank.exit"} if sample.ended is not None else set()
    return own | kept | ({"fault.ending"} if sample.lasts else set())


def without(sample: Sample, event: str) -> Sample:
    """The sample as if nobody had recorded that event."""
    return replace(
        sample,
        records=[record for record in sample.records if record[0] != event],
        others=[fact for fact in sample.others if fact.event != event],
        ended=None if event == "rank.exit" else sample.ended,
        lasts=sample.lasts and event != "fault.ending",
    )


def unmissed(kind: str, event: str) -> bool:
    """Whether the fault is proven without such a record."""
    return not not_passed(findings(kind, sample=without(SAMPLES[kind], event)))


@pytest.mark.parametrize("kind", kinds())
def test_no_record_is_missing_without_a_doubt_but_those_that_are_named(kind: str) -> None:
    assert {event for event in records(SAMPLES[kind]) if unmissed(kind, event)} == of_kind(kind, CONTEXT)
