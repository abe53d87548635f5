"""MindSpore's needs of MindIO TFT against its interface: every point in which they disagree."""

from __future__ import annotations

from dataclasses import dataclass

from chaos.doctor.sdk.needs import Needs, RegisteredFunction, Use
from chaos.doctor.sdk.offered import HandlerCall, Offered
from chaos.doctor.sdk.read import takes

OWN_AGENT = ("report_fault_ranks", "report_stop_complete", "report_strategies", "report_result")
"""Actions of a cluster's agent. MindSpore registers functions of its own for them if ARF runs without an agent."""

CONTROLLER = (
    "tft_init_controller",
    "tft_start_controller",
    "tft_destroy_controller",
    "tft_query_high_availability_switch",
)
"""Names of ``controller_ttp`` that host the controller. A caller of one of them depends on it."""


@dataclass(frozen=True)
class Disagreement:
    """One point. ``own_agent``: it matters only where MindSpore's own functions stand in for a cluster's agent."""

    text: str
    own_agent: bool = False


def disagreements(needs: Needs, offered: Offered) -> list[Disagreement]:
    """Return every point in which they disagree, each once. A point that the files do not show is none."""
    points = [_of_use(use, offered) for use in needs.uses if not use.guarded]
    points += [_of_function(registered, offered) for registered in needs.registered]
    first: dict[str, Disagreement] = {}
    for disagreement in points:
        if disagreement is not None:
            first.setdefault(disagreement.text.partition(" (")[0], disagreement)
    return list(first.values())


def _of_use(use: Use, offered: Offered) -> Disagreement | None:
    module = f"mindio_ttp.{use.module}"
    own_agent = use.module == "controller_ttp" and use.name not in CONTROLLER
    if use.module not in offered.names:
        return Disagreement(f"{module} is missing (used by {use.where})", own_agent)
    offer = offered.names[use.module].get(use.name)
    if offer is None:
        return Disagreement(f"{module} has no {use.name} (used by {use.where})", own_agent)
    if use.member and offer.members and use.member not in offer.members:
        return Disagreement(f"{use.name} has no {use.member} (used by {use.where}; defined at {offer.where})")
    if use.positional is None or offer.signature is None or takes(offer.signature, use.positional, use.keywords):
        return None
    names = f" and {', '.join(use.keywords)}" if use.keywords else ""
    called = f"{use.name} cannot be called with {_arguments(use.positional)}{names}"
    return Disagreement(f"{called} ({use.where} calls {use.name}{offer.signature} of {offer.where} so)", own_agent)


def _of_function(registered: RegisteredFunction, offered: Offered) -> Disagreement | None:
    passed = offered.calls.get(registered.name, [])
    unfit = [call for call in passed if not takes(registered.signature, call.arguments, call.keywords)]
    # What is called by the same name only may be another's: then one call that fits is enough.
    if not unfit or (len(unfit) < len(passed) and not any(call.surely for call in unfit)):
        return None
    count = " or ".join(dict.fromkeys(_passed(call) for call in unfit))
    text = f"MindSpore's {registered.function} cannot take the {count} that the SDK passes for {registered.name}"
    places = f"{registered.where}: {registered.function}{registered.signature}; {unfit[0].where}"
    return Disagreement(f"{text} ({places})", registered.name in OWN_AGENT)


def _passed(call: HandlerCall) -> str:
    names = f", {', '.join(call.keywords)} by name," if call.keywords else ""
    return f"{_arguments(call.arguments + len(call.keywords))}{names}"


def _arguments(count: int) -> str:
    return f"{count} argument" if count == 1 else f"{count} arguments"
