"""The sections with keys that a MindFormers checks: read from its own template, without importing it.

In ``mindformers/tools/register/template.py`` (1.5 to 2.1) each section is a class with a ``_name``; its other names are
the section's keys. Unless the class, or its base, says otherwise, another key ends the job.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

_SECTIONS = ("runner_config", "parallel_config", "monitor_config", "recompute_config", "swap_config", "moe_config")
"""Sections of a training with classes that may check."""

_CHECKING = "Config"
"""The class that checks; classes with another base do not."""

LARGEST = 64 * 1024
"""Most bytes of a template that is read: those of 1.5 to 2.1 have 23,000 at most, and f-strings parse slowly."""

_LENIENT = "_raise_error_for_unexpected_key"


@lru_cache(maxsize=8)
def checked_keys(template: str) -> Mapping[str, frozenset[str]]:
    """Return the keys of each section. Empty if the text is not of this form, or longer than any template."""
    if len(template) > LARGEST:
        return MappingProxyType({})
    try:
        classes = [node for node in ast.parse(template).body if isinstance(node, ast.ClassDef)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return MappingProxyType({})
    keys = {}
    for definition in classes:
        assigned = _assigned(definition)
        name, raises = assigned.get("_name"), assigned.get(_LENIENT)
        builds_on = [base.id for base in definition.bases if isinstance(base, ast.Name)]
        if not isinstance(name, ast.Constant) or name.value not in _SECTIONS or builds_on != [_CHECKING]:
            continue
        if raises is None or (isinstance(raises, ast.Constant) and raises.value is True):
            keys[str(name.value)] = frozenset(key for key in assigned if not key.startswith("_"))
    return MappingProxyType(keys)


def _assigned(definition: ast.ClassDef) -> dict[str, ast.expr | None]:
    assigned: dict[str, ast.expr | None] = {}
    for node in definition.body:
        if isinstance(node, ast.Assign):
            assigned |= {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            assigned[node.target.id] = node.value
    return assigned
