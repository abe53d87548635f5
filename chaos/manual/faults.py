"""docs/reference/faults.md: every fault kind of this package, from its docstrings and attributes."""

from __future__ import annotations

from collections import defaultdict
from importlib.metadata import EntryPoint
from pathlib import Path

from chaos.base.families import Member
from chaos.faults.behaviours import Lasting, Preparing
from chaos.faults.kind import FaultKind
from chaos.faults.registered import fault_kind
from chaos.manual.prose import cell, doc_of, markdown, module_doc, own_points
from chaos.manual.shipped import shipped_scenarios, some

_HEAD = """\
# Faults

Made by `python -m chaos.manual` from the fault kinds themselves. Do not edit.

A fault is one entry of a scenario's `faults`: a kind, a target, a trigger, and the kind's parameters. Which ranks a
target means, and when a trigger fires, is in [scenario.md](scenario.md#target); it is the same for all kinds. A fault
counts only when its evidence is in the history, and what must be put back is on disk before it is made. Where a kind
raises FaultMissed, the fault did not happen as planned, and the verdict is *unknown*.
`chaos plan` tells what a fault should lead to. How to write another kind: [extending.md](../guides/extending.md).

What most kinds share is said here, and only its exceptions below:

- **made by** the agent, which holds the rank and gets the order with its answer. Raises FaultMissed when it does not
  hold the rank.
- **undone by** no step: nothing changes outside the rank's process, and changes in it end with it, or before.
- **lasts** for `seconds`, or until the launch has ended, where the kind has this parameter. A condition that vanishes
  before proves nothing.
- **risk** low: nothing of others is changed. A kind with a risk must be allowed by its name under `allow`.
- **needs** are what `chaos doctor` looks for.
- An error that a device reports is a `RuntimeError`, which MindSpore classifies by its text.
- A damaged checkpoint keeps its name, mode and times. Where a checkpoint is several files, in MindFormers' new layout,
  the parameter `part` selects one: `model` (the default), `optimizer`, `common.json` or `metadata.json`.
"""

_SHARED = {
    "made by": "Answer the agent, which holds the rank, with the order. "
    "Raises FaultMissed when it does not hold the rank.",
    "undone by": "No step: nothing changes outside the rank's process, and changes in it end with it, or before.",
    "lasts": "`seconds`, or the time until the launch has ended. A condition that vanishes before proves nothing.",
}
"""Rows that the head of the page explains once, for all kinds with these words."""

_WORDS_OF_A_LABEL = 5
"""A first sentence of so few words only names the class again."""


def faults_page(scenarios: Path) -> str:
    """Return the page. ``scenarios`` is the directory of the shipped scenarios; each kind names those that use it."""
    used: dict[str, set[str]] = defaultdict(set)
    for name, cells in shipped_scenarios(scenarios).items():
        for scenario in cells:
            for fault in scenario.faults:
                used[fault.kind].add(name)
    points = own_points("faults")
    table = ["| kind | what it does | effect that the plan reckons with |", "|---|---|---|"]
    table += [f"| [{point.name}](#{point.name}) | {_first(point)} | {point.load().effect} |" for point in points]
    sections = [_section(point, sorted(used[point.name])) for point in points]
    return "\n".join([_HEAD, *table, "", *sections]).rstrip() + "\n"


def _first(point: EntryPoint | Member) -> str:
    return cell(module_doc(point).split("\n\n")[0]).rstrip(".")


def _section(point: EntryPoint | Member, scenarios: list[str]) -> str:
    kind = fault_kind(point.name)
    rows = []
    for name, parameter in (kind.parameters or {}).items():
        left_out = (
            "required"
            if parameter.required
            else f"default {parameter.default}"
            if parameter.default is not None
            else "optional"
        )
        rows.append((f"`{name}`", cell(f"{parameter.about}; {parameter.range}; {left_out}")))
    rows += [
        ("made by", doc_of(kind, "inject")),
        ("evidence", doc_of(kind, "evidence")),
        ("undone by", doc_of(kind, "undo_steps")),
    ]
    if isinstance(kind, Preparing):
        rows.append(("before the job", f"{doc_of(kind, 'prepare')} {doc_of(kind, 'prepare_steps')}"))
    if kind.required_place is not None:
        phases = (
            ""
            if kind.required_place.phases is None
            else f", at {' or '.join(f'`{phase}`' for phase in kind.required_place.phases)}"
        )
        handlers = ", or at a handler of the SDK" if kind.required_place.handlers else ""
        rows.append(("place", f"in the rank, which the agent holds{phases}{handlers}"))
    if isinstance(kind, Lasting):
        rows.append(("lasts", doc_of(kind, "lasts")))
    if kind.needs:
        rows.append(("needs", ", ".join(f"`{need}`" for need in kind.needs)))
    if kind.hazard is not None:
        rows.append(("risk", cell(f"{kind.hazard.risk}: {kind.hazard.disturbs} ({kind.hazard.undone})")))
    rows.append(("scenarios", some(scenarios) or "none is shipped"))
    lines = [f"## {point.name}", "", module_doc(point), "", *_own_doc(kind, point), "| | |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {text} |" for name, text in rows if _SHARED.get(name) != text), ""])


def _own_doc(kind: FaultKind, point: EntryPoint | Member) -> list[str]:
    """Return what the docstring of a kind's own class adds to its module's; nothing for a class of several kinds."""
    text = markdown(type(kind).__doc__)
    if type(kind).__module__ != point.module:
        return []
    head, _, rest = text.partition(". ")
    if len(head.split()) <= _WORDS_OF_A_LABEL:
        text = rest
    return [markdown(text), ""] if text else []
