"""The catalogue of defects: the ``DEFECTS`` of every module in chaos/selftest/defects/."""

from __future__ import annotations

import pkgutil
from collections import Counter
from importlib import import_module

from chaos.selftest import defects
from chaos.selftest.defect import Defect


def catalogue() -> tuple[Defect, ...]:
    """Return every defect, module by module in the order of their names.

    Raises ValueError when two have the same name: their rows could not be distinguished.
    """
    all_defects: list[Defect] = []
    modules = pkgutil.walk_packages(defects.__path__, f"{defects.__name__}.")
    for name in sorted(module.name for module in modules if not module.ispkg):
        module_defects: tuple[Defect, ...] = import_module(name).DEFECTS
        all_defects.extend(module_defects)
    twice = [name for name, count in Counter(defect.name for defect in all_defects).items() if count > 1]
    if twice:
        raise ValueError(f"defects of the same name: {', '.join(twice)}")
    return tuple(all_defects)
