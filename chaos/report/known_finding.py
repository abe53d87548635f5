"""Whether a fail is that of a known finding.

A finding of the scenario excuses the checks that it names, and no others. A finding with a signature shows in runs of
any scenario: it excuses the statements whose own evidence bears the signature (their ``data`` names the finding).
"""

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


def failed_beyond(checks: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the checks that fail by more than signatures, each once, in the order of the report."""
    return tuple(dict.fromkeys(str(check["name"]) for check in checks if _fails(check) and not _signature(check)))


def signatures(checks: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the findings whose signatures explain a fail; none where anything else fails, or is unknown."""
    checks = tuple(checks)
    if failed_beyond(checks) or any(check.get("verdict") == "unknown" for check in checks):
        return ()
    return tuple(dict.fromkeys(_signature(check) for check in checks if _fails(check)))


def _fails(check: Mapping[str, Any]) -> bool:
    return check.get("verdict") == "fail"


def _signature(check: Mapping[str, Any]) -> str:
    data = check.get("data")
    finding = data.get("finding") if isinstance(data, Mapping) else None
    return finding if isinstance(finding, str) else ""


def _sdk(simulated: Iterable[Mapping[str, Any]]) -> str:
    return sdk_by((str(stand_in.get("part")), str(stand_in.get("layer"))) for stand_in in simulated)


def _names(names: object) -> set[str]:
    return {name for name in names if isinstance(name, str)} if isinstance(names, list | tuple) else set()
