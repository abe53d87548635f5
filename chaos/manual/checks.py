"""docs/reference/checks.md: every check, from its docstring, with the seeded defects that it must catch."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterable
from importlib import import_module

from chaos import faults, mechanisms
from chaos.checks import mechanism, registry
from chaos.manual.prose import cell, markdown
from chaos.selftest.catalogue import catalogue
from chaos.selftest.defect import Defect

_HEAD = """\
# Checks

Made by `python -m chaos.manual` from the checks themselves and the catalogue of `chaos selftest`. Do not edit.

A check looks at plan, history and files of a finished run and says statements with a verdict each; the worst counts.
The exact rules of each check, and its unknown cases, are in [verdicts.md](../design/verdicts.md). Below each check
stand the defects that are put into good recoveries to see that it catches them; `chaos selftest` does it anew. How to
write another check: [extending.md](../guides/extending.md).
"""


def checks_page() -> str:
    """Return the page, in the order in which a report shows the checks."""
    defects = catalogue()
    table = ["| check | what it judges | seeded defects |", "|---|---|---|"]
    sections = []
    for name, check in registry.BUILT_IN.items():
        doc = markdown(sys.modules[check.__module__].__doc__).partition(": ")[2]
        caught = [defect for defect in defects if defect.check == name]
        table.append(f"| [{name}](#{name}) | {cell(doc.split(chr(10) * 2)[0]).rstrip('.')} | {len(caught)} |")
        sections.append(_section(name, doc[0].upper() + doc[1:], caught))
    return "\n".join([_HEAD, *table, "", *sections]).rstrip() + "\n"


def _section(name: str, doc: str, defects: Iterable[Defect]) -> str:
    lines = [f"## {name}", "", doc, ""]
    if name in registry.PRECONDITIONS:
        lines += ["While it is unknown, failures of all other checks become unknown.", ""]
    if name == "mechanism":
        lines += ["Its rules, one file for each mechanism:", "", *_rules(), ""]
    lines += ["| defect | put into | verdict |", "|---|---|---|"]
    lines += [f"| {cell(defect.what)} (`{defect.name}`) | {defect.layer} | {defect.verdict} |" for defect in defects]
    return "\n".join([*lines, ""])


def _rules() -> list[str]:
    rules = []
    modules = {}
    for package in (mechanism, mechanisms, faults):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            *_, parent, leaf = module.name.split(".")
            if package is not faults or leaf == "rule":
                modules[parent if leaf == "rule" else leaf] = module.name
    for name, path in sorted(modules.items()):
        doc = cell(import_module(path).__doc__)
        if doc.startswith("Part of check `mechanism`: "):
            text = doc.removeprefix("Part of check `mechanism`: ")
            rules.append(f"- `{name}`: {text}")
    return rules
