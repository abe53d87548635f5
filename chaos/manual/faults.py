"""docs/reference/faults.md: every fault kind of this package, from its docstrings and attributes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import TypeAlias

from chaos.base.families import Member
from chaos.faults.behaviours import Lasting, Preparing
from chaos.faults.condition import SECONDS
from chaos.faults.kind import FaultKind
from chaos.faults.registered import fault_kind
from chaos.manual.prose import bullet, cell, doc_of, markdown, module_doc, own_points
from chaos.plan.rules.parameters import Parameter

_HEAD = f"""\
# Faults

Made by `python -m chaos.manual` from the fault kinds themselves. Do not edit. `chaos faults KIND` prints a kind with an
example, `chaos list --fault KIND` the scenarios that show it.

A fault is an entry of a scenario's `faults`: a kind, a target, a trigger ([scenario.md](scenario.md#target)), and the
kind's parameters. It counts only when its evidence is in the history. `chaos plan` says what it should lead to. Another
kind: [extending.md](../guides/extending.md).

A section has what differs from these rules:

- **effect**: none; the job trains on.
- **missed**: a fault that did not happen as planned makes the verdict *unknown*. It is missed where its process or node
  has ended without the evidence or in another way, where a rank is not held or could not act, and where a tool or a
  cluster refuses.
- **undone by** no step: changes inside a process end with it, and an end cannot be put back. A step is on disk before
  the fault is made.
{bullet(f"`seconds`: {SECONDS.about}. It is {SECONDS.range}. A condition that vanishes before proves nothing.")}
- **place**, the phases at which the fault can be made: all that the plan accepts. With a place the agent holds the
  rank.
- **risk** low: nothing of others is changed. A kind with a risk must be allowed by its name under `allow`.
- **needs**, which `chaos doctor` looks for: none.
- What several victims share, such as a node, a disk or a load, is changed once for all of them.
"""

_NO_STEP = "No step"
_DEFAULT = {
    "effect": "none",
    "undone by": f"{_NO_STEP}.",
    "lasts": "`seconds`, or the time until the launch has ended. A condition that vanishes before proves nothing.",
}
"""Rows that the head of the page explains once, for all kinds with these words."""

_KNOWN_END = re.compile(r"No step: (?!the cluster)[^.]*\.")
"""Reasons for the lack of an undo step that the head of the page gives."""

_KNOWN_MISS = re.compile(
    r" ?Raises FaultMissed (?:if|when|on|for|where) [^.]*\b(?:end|ended|live|hold the rank|not held|refuses)\b[^.]*\."
)
"""Reasons for a missed fault that the head of the page gives."""

_MISS = re.compile(r" ?Raises FaultMissed ([^.]*\.)")

_OF_A_FAMILY = ("evidence", "undone by")
"""Rows that a family states once, if enough of its kinds have the same words."""

_ENOUGH = 2

Point: TypeAlias = EntryPoint | Member
Rows: TypeAlias = dict[str, str]


_PREPARED = f"{_NO_STEP} beyond the preparation's. "


def faults_page() -> str:
    """Return the page."""
    families: dict[str, list[Point]] = defaultdict(list)
    for point in own_points("faults"):
        families[point.module.rpartition(".")[0]].append(point)
    table, sections = ["| family | kinds |", "|---|---|"], []
    for package, points in sorted(families.items()):
        family = package.rpartition(".")[2].replace("_", "-")
        links = ", ".join(f"[{point.name}](#{point.name})" for point in points)
        table.append(f"| [{family}](#family-{family}) | {links} |")
        sections += [f"## Family: {family}", "", markdown(import_module(package).__doc__), ""]
        sections += _entries({point: _rows(fault_kind(point.name)) for point in points})
    return "\n".join([_HEAD, *table, "", *sections]).rstrip() + "\n"


def _entries(rows: Mapping[Point, Rows]) -> list[str]:
    """Return the lines of a family's kinds. Rows that many of them share are stated before the first kind."""
    shared = {}
    for label in _OF_A_FAMILY:
        text, count = Counter(own[label] for own in rows.values()).most_common(1)[0]
        if count >= _ENOUGH and text != _DEFAULT.get(label):
            shared[label] = text
    lines = ["Unless an entry says otherwise:", "", *map(_bullet, shared.items()), ""] if shared else []
    for point, own in rows.items():
        shown = {name: text for name, text in own.items() if {**_DEFAULT, **shared}.get(name) != text}
        lines += [f"### {point.name}", "", module_doc(point), "", *map(_bullet, shown.items()), ""]
    return lines


def _bullet(row: tuple[str, str]) -> str:
    name, text = row
    return bullet(f"{name if name.startswith('`') else f'**{name}**'}: {text}")


def _rows(kind: FaultKind) -> Rows:
    made = doc_of(kind, "inject")
    rows = {f"`{name}`": _parameter(parameter) for name, parameter in (kind.parameters or {}).items()}
    rows["effect"] = str(kind.effect)
    rows["evidence"] = _without_known_reasons(doc_of(kind, "evidence"))
    rows["undone by"] = _undone_by(kind)
    if missed := " ".join(_MISS.findall(_KNOWN_MISS.sub("", made))):
        rows["missed"] = missed
    if kind.required_place is not None:
        phases = kind.required_place.phases
        where = "any phase" if phases is None else ", ".join(f"`{phase}`" for phase in phases)
        where += ", or a handler of the SDK" if kind.required_place.handlers else ""
        rows["place"] = where if kind.required_place.held else f"{where}; the agent need not hold the rank"
    if isinstance(kind, Lasting):
        rows["lasts"] = doc_of(kind, "lasts")
    if kind.needs:
        rows["needs"] = ", ".join(f"`{need}`" for need in kind.needs)
    if kind.hazard is not None:
        rows["risk"] = cell(f"{kind.hazard.risk}: {kind.hazard.disturbs}")
    return rows


def _parameter(parameter: Parameter) -> str:
    if parameter is SECONDS:
        return "optional"
    left_out = "optional" if parameter.default is None else f"default {parameter.default}"
    values = parameter.range.removeprefix("a number from ").replace("a whole number from ", "whole, ")
    return cell(f"{parameter.about}; {values}; {'required' if parameter.required else left_out}")


def _undone_by(kind: FaultKind) -> str:
    """Return what undoes a fault, and what it has prepared before the job."""
    text = _without_known_reasons(_KNOWN_END.sub(f"{_NO_STEP}.", doc_of(kind, "undo_steps")))
    return f"{text} {doc_of(kind, 'prepare_steps')}".removeprefix(_PREPARED) if isinstance(kind, Preparing) else text


def _without_known_reasons(text: str) -> str:
    return _MISS.sub(r" Missed \1", _KNOWN_MISS.sub("", text))
