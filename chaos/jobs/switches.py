"""MS_ENABLE_TFT: how MindFormers and MindSpore read it, and spellings that the two read differently.

A job of any kind may have it in ``job.environment``. It then states the same as ``job.protection``: if one of the two
is left out, it is filled in; if they disagree, they are refused. Both readers look for ``TTP:1`` and the like anywhere
in the text; MindSpore also splits it at the commas when it is imported.
Sources: MindFormers, mindformers/version_control.py (1.5 to 2.1); MindSpore 2.10, mindspore/utils/utils.py and
mindspore/train/callback/_train_fault_tolerance.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.plan.recovery.mechanism import IMPLIES, NEEDS
from chaos.plan.recovery.registry import mechanisms as registered
from chaos.scenario.completion import Filled, Origin, Unfinished
from chaos.scenario.errors import Problem, printable, quote, suggest
from chaos.scenario.models.mechanisms import switch_names
from chaos.scenario.models.terms import Mechanism
from chaos.scenario.rules_base import mapped, text

if TYPE_CHECKING:
    from chaos.scenario.load import Cell

SWITCHES = "MS_ENABLE_TFT"
"""The environment variable that switches mechanisms on."""

_PATH = f"job.environment.{SWITCHES}"
_EXAMPLE = 'write it like "{TTP:1,UCE:1}"'


def mechanisms(value: str) -> tuple[Mechanism, ...]:
    """Return the mechanisms that this value switches on: each name that is followed by ``:1`` without a blank."""
    return tuple(name for name in switch_names() if f"{name}:1" in value)


def switched_by_environment(cell: Unfinished) -> Iterator[Filled]:
    """Yield the mechanisms that are on, if the scenario writes the variable itself."""
    written = text(mapped(mapped(cell.data.get("job")).get("environment")).get(SWITCHES))
    if written is not None:
        line, column = cell.lines.nearest(_PATH)
        origin = Origin(printable(str(cell.file)), line, column, SWITCHES, written)
        yield Filled(("job", "protection"), list(mechanisms(written)), origin)


def switch_problems(cell: Cell, scenario_file: Path) -> Iterator[Problem]:
    """Yield the parts of the variable that are not read as they look."""
    written = cell.scenario.job.environment.get(SWITCHES)
    for message, hint in misread(written) if written is not None else ():
        line, column = cell.lines.nearest(_PATH)
        yield Problem(printable(str(scenario_file)), line, column, f"{SWITCHES}: {message}", hint=hint)


_SET_BY_HARNESS = {
    "MS_TFT_IP": "ranks look for the controller of MindIO TFT there, not where the harness runs it",
    "MS_TFT_PORT": "the controller of MindIO TFT then uses that port, which the harness has not checked to be free",
    "MINDIO_FOR_MINDSPORE": "the harness sets it to 1, and MindSpore takes MindIO TFT by it",
    "MINDX_TASK_ID": "no rank starts the controller of MindIO TFT then, so a controller must run outside the ranks",
}
"""Variables of a protected job that the harness sets, or leaves out, and the effect of a scenario's own value."""


def switch_remarks(cell: Cell) -> Iterator[str]:
    """Yield overrides in ``job.environment`` of the place of the SDK's controller, which nothing refuses."""
    if not any(mechanism in NEEDS["MindIO"] for mechanism in cell.scenario.job.protection):
        return
    for name, follows in _SET_BY_HARNESS.items():
        value = cell.scenario.job.environment.get(name)
        if value is not None:
            line, _ = cell.lines.nearest(f"job.environment.{name}")
            yield f"job.environment sets {name} to {printable(quote(value))} (line {line}): {follows}."


def misread(value: str) -> Iterator[tuple[str, str]]:
    """Yield a message and a hint for each misread part: neither ``NAME:0`` nor ``NAME:1``, or a switch that
    another one undoes."""
    parts = value.replace("{", "").replace("}", "").strip().split(",")
    yield from _single(parts)
    yield from _against_each_other([part.strip() for part in parts], mechanisms(value))


def _against_each_other(parts: list[str], on: tuple[Mechanism, ...]) -> Iterator[tuple[str, str]]:
    for name, count in Counter(part.partition(":")[0].strip() for part in parts if part).items():
        if count > 1 and name in switch_names():
            yield (
                f"{name} is switched {count} times: MindSpore's parser takes the last one, and others find '{name}:1' "
                "wherever it stands",
                f"switch {name} once",
            )
    for mechanism in on:
        implied = IMPLIES.get(mechanism)
        if f"{implied}:0" in parts:
            yield f"{implied}:0 has no effect, since {mechanism}:1 switches {implied} on", f"write {implied}:1"


def _single(parts: list[str]) -> Iterator[tuple[str, str]]:
    for part in parts:
        if part == "":
            continue
        name, colon, state = part.strip().partition(":")
        known = name.strip()
        if not colon:
            yield f"{quote(part)} has no value, at which MindSpore ends while it is imported (2.10)", _EXAMPLE
        elif ":" in state:
            yield (
                f"{quote(part.strip())} lacks a comma: it is one switch to MindSpore's parser and two to others",
                _EXAMPLE,
            )
        elif known == "ATO":
            yield "ATO is not planned by this version of chaos", "leave it out"
        elif known not in switch_names():
            yield f"there is no mechanism {quote(known)}", suggest(known, switch_names())
        elif name != known or state != state.strip():
            if state.strip().startswith("1"):
                message = f"{quote(part.strip())} has a blank at the colon: MindFormers and MindSpore look for "
                yield f"{message}'{known}:1' and do not find it, so {known} is off", _EXAMPLE
        else:
            yield from _state(known, state)


def _state(name: str, state: str) -> Iterator[tuple[str, str]]:
    if state in ("0", "1"):
        return
    if (meaning := registered()[name].other_states.get(state)) is not None:
        yield f"{name}:{state} ({meaning}) is not planned by this version of chaos", f"use {name}:1"
    elif state.startswith("1"):
        message = f"{quote(f'{name}:{state}')} switches {name} on: MindFormers and MindSpore look for '{name}:1' in it"
        yield message, f"write {name}:1, or {name}:0"
    else:
        yield f"{quote(f'{name}:{state}')} does not switch {name} on", f"write {name}:1, or {name}:0"
