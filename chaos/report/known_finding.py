"""Whether a fail is that of the scenario's known finding: a finding excuses the checks that it names, and no others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from chaos.plan.parts.known_finding import sdk_by


def holds(plan: Mapping[str, Any], simulated: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether the plan names a known finding that holds with the SDK of the run."""
    return isinstance(plan.get("finding"), str) and plan.get("finding_sdk") in (None, _sdk(simulated))


def explains(plan: Mapping[str, Any], simulated: Iterable[Mapping[str, Any]], failed: Collection[str]) -> bool:
    """Return whether the known finding of the plan explains that these checks have failed, all of them."""
    simulated = tuple(simulated)
    if not holds(plan, simulated) or not failed:
        return False
    expected = _names(plan.get("failing"))
    if _sdk(simulated) == "vendor":
        expected |= _names(plan.get("failing_with_vendor"))
    return expected.issuperset(failed)


def _sdk(simulated: Iterable[Mapping[str, Any]]) -> str:
    return sdk_by((str(stand_in.get("part")), str(stand_in.get("layer"))) for stand_in in simulated)


def _names(names: object) -> set[str]:
    return {name for name in names if isinstance(name, str)} if isinstance(names, list | tuple) else set()
