"""docs/reference/checks.md: every check, from its docstring, with the number of seeded defects that it must catch."""

from __future__ import annotations

import pkgutil
import sys
from collections import Counter
from collections.abc import Collection
from importlib import import_module
from typing import get_args

from chaos import faults, mechanisms
from chaos.checks import mechanism, registry
from chaos.manual.prose import bullet, cell, markdown
from chaos.selftest.catalogue import catalogue
from chaos.selftest.defect import Defect, ExpectedVerdict

_FIRST = [f"[{name}](#{name})" for name in registry.BUILT_IN if name in registry.PRECONDITIONS]

_HEAD = f"""\
# Checks

Made by `python -m chaos.manual` from the checks themselves and the catalogue of `chaos selftest`. Do not edit.

A check looks at plan, history and files of a finished run and makes statements, each with a verdict; the worst counts.
[verdicts.md](../design/verdicts.md) has the rules of each check and its unknown cases;
[extending.md](../guides/extending.md) adds a check.

While {", ".join(_FIRST[:-1])} or {_FIRST[-1]} is unknown, failures of all other checks become unknown.

Each check is tried by defects that are put into good recoveries: into files of the finished run or, while it runs, into
the SDK, the device layer or the job. Each section counts them by the required verdict. `chaos selftest --list` names
and explains them, and `chaos selftest` tries them ([selftest.md](../design/selftest.md)).
"""

_PART = "Part of check ``mechanism``: "


def checks_page() -> str:
    """Return the page, in the order in which a report shows the checks."""
    defects = catalogue()
    sections = []
    for name, check in registry.BUILT_IN.items():
        doc = markdown(sys.modules[check.__module__].__doc__).partition(": ")[2]
        sections += _section(name, doc[0].upper() + doc[1:], [defect for defect in defects if defect.check == name])
    return "\n".join([_HEAD, *sections]).rstrip() + "\n"


def _section(name: str, doc: str, defects: Collection[Defect]) -> list[str]:
    lines = [f"## {name}", "", markdown(doc), ""]
    if name == "mechanism":
        lines += ["Its rules, one file for each mechanism:", "", *_rules(), ""]
    counts = []
    for verdict in get_args(ExpectedVerdict):
        layers = Counter(defect.layer for defect in defects if defect.verdict == verdict)
        if layers:
            counts.append(f"*{verdict}* {layers.total()} ({', '.join(f'{name} {n}' for name, n in layers.items())})")
    if counts:
        lines += [f"Defects: {'; '.join(counts)}.", ""]
    return lines


def _rules() -> list[str]:
    rules = []
    modules = {}
    for package in (mechanism, mechanisms, faults):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            *_, parent, leaf = module.name.split(".")
            if package is not faults or leaf == "rule":
                modules[parent if leaf == "rule" else leaf] = module.name
    for name, path in sorted(modules.items()):
        doc = (import_module(path).__doc__ or "").partition("\n\n")[0]
        if doc.startswith(_PART):
            rules.append(bullet(f"`{name}`: {cell(doc.removeprefix(_PART))}"))
    return rules
