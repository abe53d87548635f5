"""The finding by which the run may fail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chaos.scenario.models.scenario import Scenario


@dataclass(frozen=True)
class KnownFinding:
    """The finding that the scenario shows, None where it shows none.

    ``failing`` are the checks in which the run may fail by ``finding``. The finding holds with ``finding_sdk`` only, if
    given, and in every run unless ``finding_always`` is false; with the vendor's SDK ``failing_with_vendor`` may fail,
    too.
    """

    finding: str | None
    failing: tuple[str, ...] = ()
    finding_sdk: str | None = None
    finding_always: bool = True
    failing_with_vendor: tuple[str, ...] = ()


def plan_known_finding(scenario: Scenario) -> KnownFinding:
    """Return the finding that the scenario declares."""
    known = scenario.known
    return KnownFinding(
        finding=None if known is None else known.id,
        failing=scenario.failing,
        finding_sdk=None if known is None else known.sdk,
        finding_always=known is None or known.always,
        failing_with_vendor=() if known is None else known.with_vendor,
    )


def sdk_by(simulated: Iterable[tuple[str, str]]) -> str:
    """Return ``standin`` or ``vendor``: the SDK of a run, by the part and the layer of each of its stand-ins."""
    return "standin" if any(layer == "SDK" and part.startswith("mindio_ttp") for part, layer in simulated) else "vendor"
