"""The required place of the ranks of a fault: a kind that the agent makes inside a rank must hold the rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chaos.plan.problems import Problems
    from chaos.plan.schedule import Scheduled


@dataclass(frozen=True)
class RequiredPlace:
    """The requirements of a kind that the agent makes inside a rank.

    It must hold the rank, so the trigger names a step or a handler.

    ``phases`` are the only phases of a step at which it can be made, None for all; ``handlers``: also at the entry of a
    handler of the SDK. ``held`` is False for a kind that needs no held rank and requires the phases only.
    """

    phases: tuple[str, ...] | None = None
    handlers: bool = True
    held: bool = True


def check_required_places(
    faults: Sequence[Scheduled], required: Mapping[str, RequiredPlace], problems: Problems
) -> None:
    """Note triggers at which a kind cannot be made."""
    for fault in faults:
        if (place := required.get(fault.fault.kind)) is not None:
            _check_held(fault, place, problems)


def _check_held(fault: Scheduled, place: RequiredPlace, problems: Problems) -> None:
    trigger = fault.fault.trigger
    parts: list[dict[str, Any]] = [trigger, *trigger.get("all", ())]
    steps = [part for part in parts if "step" in part]
    handlers = [part for part in parts if "handler" in part]
    where = "a step or a handler" if place.handlers else "a step"
    if place.held and (
        any("any" in part or "all" in part for part in parts[1:]) or "any" in trigger or not (steps or handlers)
    ):
        problems.add(
            f"{fault.path}.trigger",
            f"fault {fault.fault.id!r} is made by the rank itself while it is held at a barrier, so its trigger must "
            f"name {where}, and no alternatives",
            text=", ".join(trigger),
            hint="write step, and phase if it is not step.begin; after may be beside it",
        )
    elif handlers and not place.handlers:
        message = f"{fault.fault.kind} cannot be made at a handler of the SDK"
        problems.add(f"{fault.path}.trigger.handler", message, text=handlers[0]["handler"], hint="give a step")
    for part in steps:
        if place.phases is not None and part["phase"] not in place.phases:
            problems.add(
                f"{fault.path}.trigger",
                f"{fault.fault.kind} cannot be made at {part['phase']} of a step",
                text=part["phase"],
                hint=f"use one of {', '.join(place.phases)}",
            )
