"""docs/reference/faults.md: every fault kind of this package, from its docstrings and attributes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import TypeAlias

from chaos.base.families import Member
from chaos.faults.behaviours import Preparing
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

In italics: the trouble on Ascend for which a fault stands. A parameter without *default* or *optional* is required. A
family's texts and facts hold for its kinds that have no other. What several victims share, such as a node, a disk or a
load, is changed once for all of them. Where nothing is stated:

- **effect**: none; the job trains on.
- **missed**, which makes the verdict *unknown*: where its process or node has ended without the evidence or in another
  way, a rank is not held or could not act, a tool or a cluster refuses.
- **undo**: no step. Changes inside a process end with it, and an end cannot be put back; the cluster itself replaces a
  pod. A step is on disk before the fault is made.
{bullet(f"`seconds`: {SECONDS.about}. It is {SECONDS.range}. A condition that vanishes before proves nothing.")}
- **place**, the phases at which the fault can be made: all that the plan accepts. *Any* is any phase, or a handler of
  the SDK. With a place the agent holds the rank.
- **risk** low: nothing of others is changed. A kind with a risk must be allowed by its name under `allow`.
- **needs**, which `chaos doctor` looks for: none.
"""

_NO_STEP = "No step"
_UNDO = "undo"
_DEFAULT = {"effect": "none", _UNDO: f"{_NO_STEP}."}
"""Facts that the head of the page states once, for all kinds with these words."""

_ANY = "any"
"""The place that the head of the page explains."""

_ON_ASCEND = "On Ascend: "
"""How a kind begins the paragraph that the page sets in italics."""

_KNOWN_END = re.compile(r"No step: [^.]*\.")
"""Reasons for the lack of an undo step that the head of the page gives."""

_KNOWN_MISS = re.compile(
    r" ?Raises FaultMissed (?:if|when|on|for|where) [^.]*\b(?:end|ended|live|hold the rank|not held|refuses)\b[^.]*\."
)
"""Reasons for a missed fault that the head of the page gives."""

_MISS = re.compile(r" ?Raises FaultMissed ([^.]*\.)")

_OF_A_FAMILY = ("effect", "evidence", _UNDO, "needs")
"""Facts that a family states once, if every kind of it has one and enough of them have the same."""

_ENOUGH = 2
"""Kinds of a family with the same fact. An effect needs more than half of them, as most readers look for it."""

_OPTIONAL = "optional"
"""The whole text of a parameter that the head of the page explains."""

_SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z`])")

_NUMBERS = re.compile(r"([\d.e+]+) to (\d)")
"""The limits of a range."""

Point: TypeAlias = EntryPoint | Member
Rows: TypeAlias = dict[str, str]


_PREPARED = f"{_NO_STEP} beyond the preparation's. "


def faults_page() -> str:
    """Return the page."""
    families: dict[str, list[Point]] = defaultdict(list)
    for point in own_points("faults"):
        families[point.module.rpartition(".")[0]].append(point)
    contents, sections = [], []
    for package, points in sorted(families.items()):
        family = package.rpartition(".")[2].replace("_", "-")
        contents.append(f"[{family}](#family-{family})")
        sections += [f"## Family: {family}", "", markdown(import_module(package).__doc__), ""]
        sections += _entries({point: _rows(fault_kind(point.name)) for point in points})
    return "\n".join([_HEAD, markdown(f"Families: {', '.join(contents)}."), "", *sections]).rstrip() + "\n"


def _entries(rows: Mapping[Point, Rows]) -> list[str]:
    """Return the lines of a family's kinds. Facts that many of them share are stated before the first kind."""
    shared = {}
    for label in _OF_A_FAMILY:
        text, count = Counter(own.get(label) for own in rows.values()).most_common(1)[0]
        enough = len(rows) // 2 + 1 if label == "effect" else _ENOUGH
        if count >= enough and text != _DEFAULT.get(label) and all(label in own for own in rows.values()):
            shared[label] = str(text)
    lines = _facts(shared)
    for point, own in rows.items():
        shown = {name: text for name, text in own.items() if {**_DEFAULT, **shared}.get(name) != text}
        lines += [f"### {point.name}", "", *_meaning(point), *_parameters(shown), *_facts(shown)]
    return lines


def _meaning(point: Point) -> Iterator[str]:
    """Yield the paragraphs on what a kind does, with its counterpart on Ascend in italics.

    Sentences that its family states in the same words are left out.
    """
    known = cell(import_module(point.module.rpartition(".")[0]).__doc__)
    first, *more = module_doc(point).split("\n\n")
    yield from (first, "")
    for paragraph in more:
        text = cell(paragraph)
        if text.startswith(_ON_ASCEND):
            text = text.removeprefix(_ON_ASCEND)
            yield from (markdown(f"_{text[:1].upper()}{text[1:]}_"), "")
            continue
        sentences = _SENTENCE_END.split(text)
        own = [sentence for sentence in sentences if sentence not in known]
        if own:
            yield from (paragraph if own == sentences else markdown(" ".join(own)), "")


def _parameters(rows: Rows) -> list[str]:
    """Return the list of a kind's parameters but for those that the head of the page explains."""
    lines = [bullet(f"{name}: {text}") for name, text in rows.items() if name.startswith("`") and text != _OPTIONAL]
    return [*lines, ""] if lines else []


def _facts(rows: Rows) -> list[str]:
    """Return the paragraph of a kind's facts, or of a family's."""
    facts = [f"{name}." for name, text in rows.items() if text == _OPTIONAL]
    facts += [f"**{name}**: {text.rstrip('.')}." for name, text in rows.items() if text != _OPTIONAL and name[0] != "`"]
    return [markdown(" ".join(facts)), ""] if facts else []


def _rows(kind: FaultKind) -> Rows:
    made = doc_of(kind, "inject")
    rows = {f"`{name}`": _parameter(parameter) for name, parameter in (kind.parameters or {}).items()}
    rows["effect"] = str(kind.effect)
    rows["evidence"] = _without_known_reasons(doc_of(kind, "evidence"))
    rows[_UNDO] = _undone_by(kind)
    if missed := " ".join(_MISS.findall(_KNOWN_MISS.sub("", made))):
        rows["missed"] = missed
    if kind.required_place is not None:
        phases = kind.required_place.phases
        where = "any phase" if phases is None else ", ".join(f"`{phase}`" for phase in phases)
        where += ", or a handler of the SDK" if kind.required_place.handlers else ""
        where = _ANY if phases is None and kind.required_place.handlers else where
        rows["place"] = where if kind.required_place.held else f"{where}; the agent need not hold the rank"
    if kind.needs:
        rows["needs"] = ", ".join(f"`{need}`" for need in kind.needs)
    if kind.hazard is not None:
        rows["risk"] = cell(f"{kind.hazard.risk}: {kind.hazard.disturbs}")
    return rows


def _parameter(parameter: Parameter) -> str:
    if parameter is SECONDS:
        return _OPTIONAL
    left_out = "optional" if parameter.default is None else f"default {parameter.default}"
    values = _NUMBERS.sub("\\1\u2013\\2", parameter.range.removeprefix("a number from "))
    values = values.replace("a whole number from ", "whole, ").removeprefix("one of ")
    stated = (parameter.about, "" if parameter.text else values, "" if parameter.required else left_out)
    return cell("; ".join(filter(None, stated)))


def _undone_by(kind: FaultKind) -> str:
    """Return what undoes a fault, and what it has prepared before the job."""
    text = _without_known_reasons(_KNOWN_END.sub(f"{_NO_STEP}.", doc_of(kind, "undo_steps")))
    return f"{text} {doc_of(kind, 'prepare_steps')}".removeprefix(_PREPARED) if isinstance(kind, Preparing) else text


def _without_known_reasons(text: str) -> str:
    return _MISS.sub(r" Missed \1", _KNOWN_MISS.sub("", text))
